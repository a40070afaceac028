"""Proofs of Spark on a cluster of processes of its own."""
