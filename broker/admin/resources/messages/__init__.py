"""Messages and subscriptions by REST: stored messages, and subscriptions' backlogs."""
