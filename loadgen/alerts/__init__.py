"""Evaluation of Prometheus alerting rules over the server metrics sampled in a run."""
