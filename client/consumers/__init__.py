"""Consumers and readers, which receive and acknowledge the messages of topics."""
