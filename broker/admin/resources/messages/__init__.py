"""Messages and subscriptions by REST: what a topic holds, and what its subscriptions still need."""
