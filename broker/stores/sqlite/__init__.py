"""The store of topics in an SQLite file, which only one broker at a time uses."""
