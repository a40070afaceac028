"""Admission policies of one's own; docs/your-own-policy.md says how they are tried."""
