"""Immutable sequences of topic names, stored in wire format."""
