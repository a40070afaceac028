"""The benchmark of importing topics into the memory of a broker."""
