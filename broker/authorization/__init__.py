"""Decides what a role may do: superusers, tenants' admins, grants, proxies that speak for some."""
