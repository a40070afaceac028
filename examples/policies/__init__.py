"""Custom admission policies for the limiter; docs/your-own-policy.md says how to try one."""
