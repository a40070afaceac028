"""Immutable sorted sets of topic names; versions of a set share their unchanged parts."""
