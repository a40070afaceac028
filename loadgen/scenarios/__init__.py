"""Scenarios: what the clients of a run do, one folder each."""
