"""Policies of namespaces and topics that concern messages, and which of them are effective."""
