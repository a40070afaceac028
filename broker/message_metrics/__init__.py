"""Metrics of messages: of the broker, its namespaces, topics, subscriptions and clients."""
