"""Messages: loaded topics, their producers, and message stores."""
