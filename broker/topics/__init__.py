"""Topics of the broker: rules for names, creation, deletion, properties, and lookups."""
