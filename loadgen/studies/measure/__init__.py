"""Measurement of a running broker's service times, by small loads."""
