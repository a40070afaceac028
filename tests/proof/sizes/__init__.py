"""Proofs with large namespaces, imports, many patterns and the worst commands."""
