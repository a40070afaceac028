"""One task of a load: its clients, their connections, and the rows that record their requests."""
