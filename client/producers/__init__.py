"""Producers, which track messages from the program's call to the broker's receipt."""
