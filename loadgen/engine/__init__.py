"""One task of a load: clients, connections, rows."""
