"""Proofs of the client against Floodgate and real brokers."""
