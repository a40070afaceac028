"""Admin requests about policies: the regular policies of the table, and special policies."""
