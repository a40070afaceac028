"""A schema for Avro values, which are decoded by the schema of their producer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, overload

import proto.PulsarApi_pb2 as pb
from client.messages.message import ValueT
from client.schema.classes import derived, is_described
from client.schema.record import Record, as_avro
from client.schema.versioned import Reading, VersionedSchema
from limiter.extras import extra

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.schema.fields import Value


class AvroSchema(VersionedSchema[ValueT]):
    """A schema whose values are sent as Avro.

    A message is read by its producer's schema, requested from the broker once per version; the
    value is then resolved to the consumer's schema by Avro's rules.

    Args:
        record_cls: Class of the values: a Record, a dataclass or a pydantic model. With None,
            values are dicts.
        schema_definition: The Avro schema, if values are dicts.

    Raises:
        TypeError: Neither class nor definition is given, or no definition can be derived.
        ValueError: The definition breaks Avro's rules.
    """

    @overload
    def __init__(
        self: AvroSchema[dict[str, Any]], record_cls: None, schema_definition: dict[str, Any]
    ) -> None: ...

    @overload
    def __init__(
        self, record_cls: type[ValueT], schema_definition: dict[str, Any] | None = None
    ) -> None: ...

    def __init__(
        self, record_cls: type | None, schema_definition: dict[str, Any] | None = None
    ) -> None:
        from client.schema.avro_definition import AvroDefinition  # an extra's package

        self._from_dict: Callable[[Value], Value] | None = None
        self._to_dict: Callable[[Value], Value] = as_avro
        definition: Any = schema_definition
        if isinstance(record_cls, type) and issubclass(record_cls, Record):
            definition = record_cls.schema()
            self._from_dict = lambda fields: record_cls(**fields)
        elif is_described(record_cls):
            definition = self._describe(record_cls)
        elif record_cls is not None or definition is None:
            raise TypeError(
                "AvroSchema takes a Record, a dataclass or a pydantic model, or None and a"
                f" schema_definition, not {record_cls!r:.80}"
            )
        super().__init__(record_cls or dict, pb.Schema.Avro, definition, "AVRO")
        self._definition = AvroDefinition(json.dumps(definition))

    def _describe(self, record_cls: Any) -> Any:  # noqa: ANN401 - a class; a definition
        with extra("pydantic"):
            from pydantic import TypeAdapter

        definition, read = derived(record_cls, as_json=False)
        adapter: TypeAdapter[Any] = TypeAdapter(record_cls)
        self._to_dict = lambda value: as_avro(adapter.dump_python(value, by_alias=True))
        self._from_dict = lambda fields: adapter.validate_python(read(fields) if read else fields)
        return definition

    def encode(self, value: Value) -> bytes:
        """Encode a value as Avro; return bytes unchanged.

        A large, slow value can therefore be encoded in a thread, and sent as bytes.

        Raises:
            TypeError: The value has another class.
            ValueError: The value does not fit the definition.
        """
        if isinstance(value, bytes):
            return value
        self._validate_object_type(value)
        return self._definition.written(self._to_dict(value))

    def decode(self, data: bytes) -> Value:
        """Decode a value from bytes that were written with this same schema.

        Raises:
            ValueError: The bytes do not encode a value of the schema.
        """
        return self._made(self._definition.read(data))

    def _made(self, fields: Value) -> Value:
        return fields if self._from_dict is None else self._from_dict(fields)

    def decoding_of(self, info: pb.Schema) -> Reading:
        """Return the decoder of values written with another version of the topic's schema.

        Raises:
            ValueError: The version is not Avro, or breaks Avro's rules.
        """
        if info.type != pb.Schema.Avro:
            raise ValueError(f"the topic's schema is {pb.Schema.Type.Name(info.type)}, not Avro")
        writer, reader = type(self._definition)(info.schema_data), self._definition
        wanted = None if writer.source == reader.source else reader.also_named(writer)
        return Reading(lambda data: self._made(writer.read(data, wanted)))
