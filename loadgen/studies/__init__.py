"""Studies: what runs an experiment many times, and asks the tables of each run."""
