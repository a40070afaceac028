"""Naming rules, creation, deletion, properties and lookups of topics."""
