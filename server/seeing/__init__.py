"""What operators see of a running server: REST description, audit log, connections, web page."""
