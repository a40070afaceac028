"""Clients and topics for tests of subscriptions, without a network."""
