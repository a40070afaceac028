"""Scenarios as documents: YAML that names a kind, its cluster, its load and what is expected."""
