"""Proofs of Spark on a cluster of separate processes."""
