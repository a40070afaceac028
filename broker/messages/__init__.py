"""Messages: topics that are loaded, their producers, and where their messages are stored."""
