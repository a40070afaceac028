"""A module that cannot be imported."""

raise ValueError("a broken module")
