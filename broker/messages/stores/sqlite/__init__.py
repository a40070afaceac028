"""Messages in a SQLite database: one file per broker."""
