"""Topics in a SQLite file of one broker."""
