"""Admin requests about policies: those in ``broker.policies.table``, and special policies."""
