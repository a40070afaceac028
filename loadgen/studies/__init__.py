"""Studies: experiments run many times, evaluated by queries of each run's tables."""
