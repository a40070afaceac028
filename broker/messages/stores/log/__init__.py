"""Messages in a log of files: one log for the broker, in segments."""
