"""Schemas, under the names of the official client's ``pulsar.schema``."""

from client.schema.schema import BytesSchema, Schema, StringSchema

__all__ = ["BytesSchema", "Schema", "StringSchema"]
