"""Imports of topics from text and Parquet files."""
