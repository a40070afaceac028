"""Policies by which a real broker places messages, bookies and topics: kept and shown here."""
