"""Statistics of a client: as Python values, for Prometheus, and for OpenTelemetry."""
