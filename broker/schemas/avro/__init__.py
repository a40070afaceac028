"""Avro definitions, parsed and compared in separate processes."""
