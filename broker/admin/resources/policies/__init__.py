"""Policies of namespaces and topics about messages: a table, and special cases."""
