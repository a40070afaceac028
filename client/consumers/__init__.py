"""Consumers and readers: receive the messages of topics, and acknowledge them."""
