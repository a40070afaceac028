"""Metrics of a server process, for Prometheus and OpenTelemetry."""
