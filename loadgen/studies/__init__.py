"""Studies: many runs of a scenario, judged by queries of each run's tables."""
