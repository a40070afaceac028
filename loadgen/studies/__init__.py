"""Studies: experiments run many times, with questions to the tables of each run."""
