"""The results of runs: tables in files, queries of these tables, figures and verdicts."""
