"""The clients and peers of proofs, most of them processes of their own."""
