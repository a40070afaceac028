"""Message stores: their common interface, a store in memory, and a store in SQLite."""
