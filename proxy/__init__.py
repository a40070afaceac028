"""The proxy: forwards lookups and topic lists under its own limiter; pipes all other commands."""
