"""One version of a namespace in memory: its topics, partition counts and properties."""
