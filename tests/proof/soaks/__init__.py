"""Proofs that run long, or kill servers."""
