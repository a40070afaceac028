"""The messages that the program has: acknowledged, refused, or not in time."""
