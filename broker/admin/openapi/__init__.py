"""The description of the admin REST, made from its endpoints."""
