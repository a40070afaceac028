"""Shows an operator the server: the description of REST, logs, commands of a connection, a page."""
