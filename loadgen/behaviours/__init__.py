"""The behaviours of a load's clients: a module each."""
