"""The advice: which limits meet a goal, found in virtual time and confirmed by real storms."""
