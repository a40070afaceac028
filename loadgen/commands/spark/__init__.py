"""Commands about Spark: its cluster, and its SQL."""
