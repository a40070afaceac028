"""Ownership of bundles: which broker of a cluster serves the topics of each bundle."""
