"""Topics and namespaces: naming rules, creation, deletion, properties, lookups."""
