"""Metrics of messages: for broker, namespaces, topics, subscriptions and clients."""
