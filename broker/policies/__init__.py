"""Policies of namespaces and topics about messages, and what is in force for a topic."""
