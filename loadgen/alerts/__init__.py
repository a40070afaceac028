"""Evaluation of Prometheus' alerting rules over the metrics sampled in a run."""
