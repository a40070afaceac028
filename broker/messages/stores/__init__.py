"""Message stores: one interface, in memory and in a database."""
