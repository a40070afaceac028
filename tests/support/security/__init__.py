"""A small world of tenants, grants and roles, and what each role is answered in it."""
