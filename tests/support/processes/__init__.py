"""Processes as a user would start them: servers, commands, PostgreSQL, Prometheus."""
