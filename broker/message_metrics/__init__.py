"""Message metrics of the broker and its namespaces, topics, subscriptions and clients."""
