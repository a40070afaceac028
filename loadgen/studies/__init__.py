"""Studies: many runs of a scenario, each judged by queries of its tables."""
