"""Compact per-entry data for very many entries."""
