"""The store of topics in a PostgreSQL database that several brokers can share."""
