"""Avro schema definitions, parsed and compared in separate processes."""
