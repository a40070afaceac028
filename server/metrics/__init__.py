"""Metrics of a server process, and how Prometheus and OpenTelemetry get them."""
