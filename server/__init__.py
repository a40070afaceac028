"""Base of every server process: configuration, listeners, HTTP endpoint, logs, drain."""
