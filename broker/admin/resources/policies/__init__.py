"""Policies of namespaces and topics about messages: a table, and those that are unlike."""
