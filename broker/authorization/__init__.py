"""What a role may do: superusers, admins of tenants, grants, and proxies that speak for others."""
