"""Proofs with crowds of consumers."""
