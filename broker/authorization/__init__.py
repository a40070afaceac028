"""Authorization of roles: superusers, tenants' admins, grants, and proxies on behalf of clients."""
