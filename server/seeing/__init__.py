"""What an operator sees: the description of REST, logs, commands of a connection, a page."""
