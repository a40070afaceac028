"""The OpenAPI description of the admin REST, derived from its endpoints."""
