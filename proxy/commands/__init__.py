"""The commands that a proxy serves: a row of the table each, and their handlers by subject."""
