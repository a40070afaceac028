"""Clients' topic patterns: compiled, limited in cost, and matched with lists of topic names."""
