"""Topics in a PostgreSQL database that several brokers share."""
