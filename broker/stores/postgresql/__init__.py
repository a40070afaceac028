"""Topics in a PostgreSQL database shared by several brokers."""
