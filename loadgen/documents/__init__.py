"""Scenario documents: YAML files that state clients, servers, shocks and expectations."""
