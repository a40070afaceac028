"""The Pulsar proxy: forwards lookups and topic lists within memory limits, and pipes the rest."""
