"""Behaviours of a load's clients, such as listing or publishing, one module each."""
