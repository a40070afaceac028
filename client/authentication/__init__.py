"""Credentials of a client, under the official client's names, and the certificates for TLS."""
