"""Analysis in Spark SQL over the Parquet of run directories."""
