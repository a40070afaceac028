"""Metrics of the limiter for Prometheus and OpenTelemetry."""
