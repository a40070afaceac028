"""Immutable lists of topic names, stored in the wire format of Pulsar's responses."""
