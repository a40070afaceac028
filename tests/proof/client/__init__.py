"""Proofs of the client against brokers of any make."""
