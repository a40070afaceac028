"""Schemas: how values become the bytes of messages, and the bytes values again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from client.messages.message import EntryHead, Message
    from client.pulsar_client import PulsarClient
    from client.schema.fields import Value


class WriterSchemas(Protocol):
    """The schemas that the producers of a topic had."""

    def known(self, entry: EntryHead) -> bool:
        """Have an entry read by its own schema; false if that is not known yet."""

    async def learn(self, entry: EntryHead) -> None:
        """Have an entry read by its own schema, which the broker is asked for."""


class Schema:
    """Encodes and decodes values, and tells the broker how they look.

    A schema of a program's own derives from it, with ``encode`` and ``decode``.

    Args:
        record_cls: The class that values have to be of.
        schema_type: Its type, ``pb.Schema.Type``; None for plain bytes.
        schema_definition: Its definition, in values that JSON has.
        schema_name: Its name.
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
            # Spaces and all as the official Python client has them: a broker takes definitions
            # that are equal byte by byte for one version.
            text = json.dumps(schema_definition, indent=True)
            self._schema_info = pb.Schema(
                name=schema_name, schema_data=text.encode(), type=schema_type
            )

    def encode(self, value: Value) -> bytes:
        """Return the bytes of a value.

        Raises:
            TypeError: The value is of another type.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how values are encoded")

    def decode(self, data: bytes) -> Value:
        """Return the value of bytes."""
        raise NotImplementedError(f"{type(self).__name__} does not say how values are decoded")

    def decode_message(self, message: Message) -> Value:
        """Return the value of a message."""
        return self.decode(message.data())

    def schema_info(self) -> pb.Schema | None:
        """Return what the broker is told; None for plain bytes."""
        return self._schema_info

    def writer_schemas(self, cluster: PulsarClient, topic: str) -> WriterSchemas | None:
        """Return what knows the versions of a topic's schema; None if values need none.

        Args:
            cluster: Where versions are asked for.
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


class BytesSchema(Schema):
    """Takes bytes as they are."""

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


class StringSchema(Schema):
    """Takes text, sent as UTF-8."""

    def __init__(self) -> None:
        super().__init__(str, pb.Schema.String, None, "STRING")

    def encode(self, value: str) -> bytes:
        """Return the text as UTF-8."""
        self._validate_object_type(value)
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Return the text."""
        return data.decode()
