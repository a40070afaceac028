"""Topics taken in from text and Parquet files."""
