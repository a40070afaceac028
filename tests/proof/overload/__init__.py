"""Proofs with peers that do not read, or read slowly."""
