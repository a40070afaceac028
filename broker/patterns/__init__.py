"""Clients' topic patterns: compiled, limited in cost, and matched against lists of topic names."""
