"""Immutable sequences of topic names, held as the bytes that go on the wire."""
