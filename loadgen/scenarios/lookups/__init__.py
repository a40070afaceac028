"""The lookups: clients look topics up on a schedule."""
