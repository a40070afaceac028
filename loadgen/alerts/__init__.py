"""What Prometheus would make of a run: rules of alerts, evaluated over its samples."""
