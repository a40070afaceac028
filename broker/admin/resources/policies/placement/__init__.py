"""Policies for a real broker's placement of messages, bookies and topics: stored and shown."""
