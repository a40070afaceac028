"""Server introspection for operators: REST description, audit log, connections, web page."""
