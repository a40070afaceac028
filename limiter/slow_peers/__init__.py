"""Peers that do not read their responses: detection, deferral and eviction."""
