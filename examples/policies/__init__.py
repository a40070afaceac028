"""Custom admission policies; docs/your-own-policy.md says how to try a policy."""
