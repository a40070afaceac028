"""The commands of a proxy: a table, with handlers by subject."""
