"""Immutable sorted sets of topic names; versions of a set share unchanged parts."""
