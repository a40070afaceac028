"""The store of topics in a SQLite file that one broker uses."""
