"""Reads commands: parsed, fields of them unparsed, and the bounds of what is parsed at all."""
