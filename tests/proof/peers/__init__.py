"""The clients and peers of proofs, most of them separate processes."""
