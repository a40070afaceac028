"""Connections that are piped to a broker of the client's choice, byte by byte."""
