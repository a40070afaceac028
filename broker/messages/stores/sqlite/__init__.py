"""Messages in a SQLite database: one file a broker."""
