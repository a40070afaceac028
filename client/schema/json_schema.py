"""A schema for JSON values: records, dataclasses and pydantic models."""

from __future__ import annotations

import json
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.messages.message import ValueT
from client.schema.classes import derived, is_described
from client.schema.record import Record, values_of
from client.schema.schema import Schema
from limiter.extras import extra

if TYPE_CHECKING:
    from collections.abc import Callable


class JsonSchema(Schema[ValueT]):
    """A schema whose values are sent as JSON.

    Example:
        @dataclass
        class Order:
            customer: str
            count: int = 1

        producer = await client.create_producer("orders", schema=JsonSchema(Order))
        await producer.send(Order("anna"))

    Args:
        record_cls: Class of the values: a Record, a dataclass or a pydantic model. Values of
            dataclasses and models are validated when decoded.
        schema_definition: The Avro schema that describes the values to the broker; None derives it
            from the class.

    Raises:
        TypeError: Another kind of class, or a field without a derivable definition.
    """

    def __init__(
        self, record_cls: type[ValueT], schema_definition: dict[str, Any] | None = None
    ) -> None:
        self._as_json: Callable[[Any], bytes] = _record_as_json
        self._value_of: Callable[[bytes], Any]
        found: object = record_cls
        if isinstance(found, type) and issubclass(found, Record):
            self._value_of = partial(_record_of, found)
            definition = schema_definition or found.schema()
        elif is_described(record_cls):
            with extra("pydantic"):
                from pydantic import TypeAdapter

            adapter: TypeAdapter[Any] = TypeAdapter(record_cls)
            self._as_json = partial(adapter.dump_json, by_alias=True)
            self._value_of = adapter.validate_json
            definition = schema_definition or derived(record_cls, as_json=True).definition
        else:
            raise TypeError(
                f"JsonSchema takes a Record, a dataclass or a pydantic model, not {found!r:.80}"
            )
        super().__init__(record_cls, pb.Schema.Json, definition, "JSON")

    def encode(self, value: ValueT) -> bytes:
        """Encode a value as JSON without spaces.

        Raises:
            TypeError: The value has another class.
        """
        self._validate_object_type(value)
        return self._as_json(value)

    def decode(self, data: bytes) -> ValueT:
        """Decode a value from JSON.

        Raises:
            ValueError: Invalid JSON, or a mismatch with a dataclass or model.
            TypeError: A mismatch with a Record.
        """
        value: ValueT = self._value_of(data)
        return value


def _record_as_json(value: Record) -> bytes:
    return json.dumps(values_of(value), default=_other_as_json, separators=(",", ":")).encode()


def _record_of(record_cls: type[Record], data: bytes) -> Record:
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise TypeError(f"{record_cls.__name__} is a JSON object, not {fields!r:.80}")
    return record_cls(**fields)


def _other_as_json(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Record):
        return values_of(value)
    raise TypeError(f"JSON has no form for {type(value).__name__}: {value!r:.80}")
