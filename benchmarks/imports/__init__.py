"""The benchmark of imports into memory."""
