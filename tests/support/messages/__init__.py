"""Topics, connections and consumers for tests of subscriptions."""
