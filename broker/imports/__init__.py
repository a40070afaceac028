"""Bulk import of topics from text and Parquet files."""
