"""Topics and namespaces: rules of names, creation, deletion, properties, lookups."""
