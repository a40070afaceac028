"""Sets of watched names: built once for a pattern, kept up to date by changes."""
