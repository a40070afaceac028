"""Client credentials with the official client's class names, and TLS contexts."""
