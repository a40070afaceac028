"""Views into a running server for operators: REST description, audit log, connections, web page."""
