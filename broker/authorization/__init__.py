"""Authorization: decides which operations a role, or a proxy for a client, may perform."""
