"""Definitions in Avro's language: read and compared in processes of their own."""
