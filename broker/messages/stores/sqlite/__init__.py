"""A message store in a SQLite database, with one file per broker."""
