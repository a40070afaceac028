"""Policies of namespaces and topics about messages, and the effective policies of a topic."""
