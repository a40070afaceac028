"""Studies: loops that run an experiment many times, and ask the tables of each run."""
