"""What every Floodgate server process has: configuration, listeners, HTTP endpoint, logs, drain."""
