"""Avro schema definitions, which are parsed and compared in separate processes."""
