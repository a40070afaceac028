"""Scenarios as documents: YAML with clients, servers, shocks and expectations."""
