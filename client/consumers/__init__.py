"""Consumers and readers: what receives the messages of topics, and acknowledges them."""
