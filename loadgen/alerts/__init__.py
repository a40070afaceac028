"""Evaluation of Prometheus' alerting rules over the samples of a run."""
