"""Scenario documents: YAML files with clients, servers, shocks and expectations."""
