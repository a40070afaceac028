"""Sets of watched names: built once for a pattern, updated by changes."""
