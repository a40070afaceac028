"""Results of runs: tables in files, queries of them, figures, and verdicts."""
