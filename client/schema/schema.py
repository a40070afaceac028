"""The base class of schemas, which encode and decode values, and two simple schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic, Protocol

import proto.PulsarApi_pb2 as pb
from client.messages.message import ValueT

if TYPE_CHECKING:
    from client.messages.message import EntryHead, Message
    from client.pulsar_client import PulsarClient


class WriterSchemas(Protocol):
    """The schema versions that a topic's producers have used to encode messages."""

    def known(self, entry: EntryHead) -> bool:
        """Give an entry the decoder for its schema version.

        Return False if the version must be fetched first.
        """

    async def learn(self, entry: EntryHead) -> None:
        """Give an entry the decoder for its schema version, fetched from the broker if needed."""


class Schema(Generic[ValueT]):
    """A schema, which encodes and decodes values and describes them to the broker.

    Base class of a program's own schemas, with ``encode`` and ``decode``; ``Schema[Order]`` has
    values of class Order.

    Args:
        record_cls: The class of values.
        schema_type: The schema's type, ``pb.Schema.Type``; None for plain bytes.
        schema_definition: The schema's definition, as a JSON value.
        schema_name: The schema's name.
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
        """Encode a value as the bytes of a message.

        Raises:
            TypeError: The value has another type.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define encode()")

    def decode(self, data: bytes) -> ValueT:
        """Decode a value from the bytes of a message."""
        raise NotImplementedError(f"{type(self).__name__} does not define decode()")

    def decode_message(self, message: Message[Any]) -> ValueT:
        """Decode the value of a received message."""
        return self.decode(message.data())

    def schema_info(self) -> pb.Schema | None:
        """Return the description of the schema for the broker; None for plain bytes."""
        return self._schema_info

    def writer_schemas(self, cluster: PulsarClient, topic: str) -> WriterSchemas | None:
        """Return an object that fetches the versions of a topic's schema.

        It is None if decoding does not depend on versions.

        Args:
            cluster: The client that fetches the schema versions.
            topic: Full name of the topic.
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
    """A schema whose values are bytes, sent unchanged."""

    def __init__(self) -> None:
        super().__init__(bytes, None, None, "BYTES")

    def encode(self, value: bytes) -> bytes:
        """Return the bytes unchanged."""
        if not isinstance(value, bytes):
            self._validate_object_type(value)
        return value

    def decode(self, data: bytes) -> bytes:
        """Return the bytes unchanged."""
        return data


class StringSchema(Schema[str]):
    """A schema whose values are strings, sent as UTF-8."""

    def __init__(self) -> None:
        super().__init__(str, pb.Schema.String, None, "STRING")

    def encode(self, value: str) -> bytes:
        """Encode a string as UTF-8."""
        self._validate_object_type(value)
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Decode a string from UTF-8."""
        return data.decode()
