"""Policies about the placement of messages and topics: stored and shown, without effect."""
