"""Counters of the limiter, as values, for Prometheus and for OpenTelemetry."""
