"""Statistics of a client: as values, for Prometheus and for OpenTelemetry."""
