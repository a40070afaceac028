"""Client credentials, under the official client's names, and TLS certificates."""
