"""Evaluates the rules of Prometheus alerts over the samples of a run."""
