"""Results of runs: written as files, read back, and condensed to figures."""
