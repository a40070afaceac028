"""The commands that a broker serves: a row of the table each, and their handlers by subject."""
