"""Immutable lists of topic names, kept in the wire format of Pulsar's responses."""
