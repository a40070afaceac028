"""A small world of tenants, grants and roles, and each role's recorded answers."""
