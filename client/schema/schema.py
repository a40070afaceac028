"""Schemas, which encode values to message bytes, and decode them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic, Protocol

import proto.PulsarApi_pb2 as pb
from client.messages.message import ValueT

if TYPE_CHECKING:
    from client.messages.message import EntryHead, Message
    from client.pulsar_client import PulsarClient


class WriterSchemas(Protocol):
    """The schemas of a topic's producers."""

    def known(self, entry: EntryHead) -> bool:
        """Set an entry's decoder to its own schema; return false if still unknown."""

    async def learn(self, entry: EntryHead) -> None:
        """Set an entry's decoder to its own schema, requested from the broker."""


class Schema(Generic[ValueT]):
    """A schema: encodes and decodes values, and describes them to the broker.

    Base class of a program's own schemas, with ``encode`` and ``decode``; ``Schema[Order]`` has
    values of class Order.

    Args:
        record_cls: The class of values.
        schema_type: The type, ``pb.Schema.Type``; None for plain bytes.
        schema_definition: The definition, as JSON values.
        schema_name: The name.
    """

    def __init__(
        self,
        record_cls: type | None,
        schema_type: pb.Schema.Type.ValueType | None,
        schema_definition: object,
        schema_name: str,
    ) -> None:
        self._record_cls = record_cls
        self._schema_info: pb.Schema | None = None
        if schema_type is not None:
            # Formatted as in the official Python client: a broker compares definitions byte by
            # byte.
            text = json.dumps(schema_definition, indent=True)
            self._schema_info = pb.Schema(
                name=schema_name, schema_data=text.encode(), type=schema_type
            )

    def encode(self, value: ValueT) -> bytes:
        """Return the bytes of a value.

        Raises:
            TypeError: The value has another type.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how values are encoded")

    def decode(self, data: bytes) -> ValueT:
        """Return the value of bytes."""
        raise NotImplementedError(f"{type(self).__name__} does not say how values are decoded")

    def decode_message(self, message: Message[Any]) -> ValueT:
        """Return the value of a message."""
        return self.decode(message.data())

    def schema_info(self) -> pb.Schema | None:
        """Return the schema's description for the broker; None for plain bytes."""
        return self._schema_info

    def writer_schemas(self, cluster: PulsarClient, topic: str) -> WriterSchemas | None:
        """Return the resolver of a topic's schema versions; None if decoding needs none.

        Args:
            cluster: The client for requests of versions.
            topic: Full name.
        """
        return None

    def _validate_object_type(self, value: object) -> None:
        if self._record_cls is not None and not isinstance(value, self._record_cls):
            raise TypeError(
                f"{type(self).__name__} encodes {self._record_cls.__name__}, not"
                f" {type(value).__name__}: {value!r:.50}"
            )

    def __str__(self) -> str:
        return type(self).__name__


class BytesSchema(Schema[bytes]):
    """A schema passing bytes unchanged."""

    def __init__(self) -> None:
        super().__init__(bytes, None, None, "BYTES")

    def encode(self, value: bytes) -> bytes:
        """Return the bytes themselves."""
        if not isinstance(value, bytes):
            self._validate_object_type(value)
        return value

    def decode(self, data: bytes) -> bytes:
        """Return the bytes themselves."""
        return data


class StringSchema(Schema[str]):
    """A schema sending text as UTF-8."""

    def __init__(self) -> None:
        super().__init__(str, pb.Schema.String, None, "STRING")

    def encode(self, value: str) -> bytes:
        """Return the text as UTF-8."""
        self._validate_object_type(value)
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Return the text."""
        return data.decode()
