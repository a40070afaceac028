"""Values as Avro, read by the schema that their own producer had."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import avro.errors
import avro.io
import avro.schema

import proto.PulsarApi_pb2 as pb
from client.schema.classes import derived, is_described
from client.schema.record import Record, as_avro
from client.schema.versioned import VersionedSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.messages.message import Message
    from client.schema.fields import Value


class AvroSchema(VersionedSchema):
    """Sends values as Avro.

    A message is read by the schema its producer had, which the broker is asked for once a version;
    then the value is made to fit this one by Avro's rules.

    Args:
        record_cls: A Record, a dataclass or a pydantic model; None: values are dicts.
        schema_definition: The definition, if values are dicts.

    Raises:
        TypeError: There is neither class nor definition, or none can be derived of the class.
        ValueError: The definition breaks Avro's rules.
    """

    def __init__(
        self,
        record_cls: type | None,
        schema_definition: dict[str, Any] | None = None,
    ) -> None:
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
        self._schema = parsed(json.dumps(definition))
        self._writer = avro.io.DatumWriter(self._schema)
        self._reader = avro.io.DatumReader(self._schema)

    def _describe(self, record_cls: Any) -> Any:  # noqa: ANN401 - a class; a definition
        from pydantic import TypeAdapter  # Half the time of importing this package is its.

        definition, read = derived(record_cls, as_json=False)
        adapter: TypeAdapter[Any] = TypeAdapter(record_cls)
        self._to_dict = lambda value: as_avro(adapter.dump_python(value, by_alias=True))
        self._from_dict = lambda fields: adapter.validate_python(read(fields) if read else fields)
        return definition

    def encode(self, value: Value) -> bytes:
        """Return a value as Avro; bytes are one already.

        So a large value, which the library is slow with, can be encoded in a thread, and then sent.

        Raises:
            TypeError: The value is of another class.
            ValueError: The value does not fit the definition.
        """
        if isinstance(value, bytes):
            return value
        self._validate_object_type(value)
        buffer = io.BytesIO()
        try:
            self._writer.write(self._to_dict(value), avro.io.BinaryEncoder(buffer))
        except avro.errors.AvroException as error:
            raise ValueError(f"the value does not fit its schema: {error!s:.500}") from error
        return buffer.getvalue()

    def decode(self, data: bytes) -> Value:
        """Return the value of bytes that were written by this very definition.

        Raises:
            ValueError: They were not.
        """
        return self._read(data, self._reader)

    def _read(self, data: bytes, reader: avro.io.DatumReader) -> Value:
        fields = avro_value(data, reader)
        return fields if self._from_dict is None else self._from_dict(fields)

    def decoding_of(self, info: pb.Schema) -> _AsWritten:
        """Return what reads the values that were written by another version.

        Raises:
            ValueError: The version is not Avro, or breaks its rules.
        """
        if info.type != pb.Schema.Avro:
            raise ValueError(f"the topic's schema is {pb.Schema.Type.Name(info.type)}, not Avro")
        definition = json.loads(info.schema_data)
        if isinstance(definition, dict) and isinstance(self._schema, avro.schema.NamedSchema):
            # Avro compares names; a class that was renamed is the same to Pulsar.
            definition.pop("namespace", None)
            definition["name"] = self._schema.fullname
        writer = parsed(json.dumps(definition))
        return _AsWritten(self, avro.io.DatumReader(writer, self._schema))


class _AsWritten:
    """Reads what was written by one version.

    Args:
        schema: Makes the value.
        reader: Reads that version's bytes.
    """

    def __init__(self, schema: AvroSchema, reader: avro.io.DatumReader) -> None:
        self._schema = schema
        self._reader = reader

    def decode_message(self, message: Message) -> Value:
        return self._schema._read(message.data(), self._reader)


def avro_value(data: bytes, reader: avro.io.DatumReader) -> Value:
    """Return what stands in Avro's bytes.

    Raises:
        ValueError: They do not fit.
    """
    try:
        return reader.read(avro.io.BinaryDecoder(io.BytesIO(data)))
    except (avro.errors.AvroException, LookupError, ArithmeticError, AssertionError) as error:
        raise ValueError(f"{len(data)} bytes cannot be read as Avro: {error!s:.500}") from error


def parsed(definition: str) -> avro.schema.Schema:
    """Return a definition as the library has it.

    Raises:
        ValueError: It breaks Avro's rules.
    """
    try:
        return avro.schema.parse(definition)
    except avro.errors.AvroException as error:
        raise ValueError(f"the definition breaks Avro's rules: {error!s:.500}") from error
