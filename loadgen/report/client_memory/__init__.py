"""The report's part on a client's memory limit."""
