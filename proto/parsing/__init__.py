"""Parsing of untrusted commands: parsers, fields of unparsed commands, and size limits."""
