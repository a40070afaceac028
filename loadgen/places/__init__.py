"""Places where scenarios run (worker processes, Spark, virtual time), and the run directories."""
