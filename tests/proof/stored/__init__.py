"""Proofs of messages that a broker keeps in a database."""
