"""Encoding and decoding of values as Avro, according to a parsed Avro schema."""

from __future__ import annotations

import copy
import io
import json
from typing import TYPE_CHECKING, Any

from client.schema.record import MAX_DEPTH
from limiter.extras import extra

with extra("avro"):
    import fastavro
    from fastavro._read_py import read_data
    from fastavro.io.binary_decoder import BinaryDecoder
    from fastavro.validation import ValidationError, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.schema.fields import Value


class AvroDefinition:
    """A parsed Avro schema, which encodes and decodes values.

    The library's compiled reader is fast, but has no depth limit: bytes nesting ten thousand
    records crash the process. While skipping fields missing in a reader, it trusts every length and
    may never end. Such values are read by the library's Python reader.

    Args:
        text: The Avro schema as JSON.

    Raises:
        ValueError: Invalid JSON, a violation of Avro's rules, or an array with items of zero bytes,
            unbounded for a few bytes of input.
    """

    def __init__(self, text: str | bytes) -> None:
        self._named: dict[str, Any] = {}
        try:
            self.source = json.loads(text)
            self.schema = _parsed(self.source, self._named)
            _, depth = _Extent(self._named).of(self.schema)
        except Exception as error:
            raise ValueError(f"the definition breaks Avro's rules: {error!r:.500}") from error
        self.is_deep = depth > MAX_DEPTH
        self.has_mutable_default = any(
            isinstance(field.get("default"), list | dict) for field in _fields(self._named)
        )
        self._to_write: Any = None

    def written(self, value: Value) -> bytes:
        """Encode a value as Avro.

        Raises:
            ValueError: The value does not fit the Avro schema.
        """
        if self._to_write is None:
            named: dict[str, Any] = {}
            self._to_write = _parsed(self.source, named)
            for field in _fields(named):
                if "null" in field["type"]:
                    field.setdefault("default", None)
        buffer = io.BytesIO()
        try:
            if not validate(value, self._to_write, raise_errors=False):
                validate(value, self._to_write)
            fastavro.schemaless_writer(buffer, self._to_write, value, strict_allow_default=True)
        except ValidationError as error:
            found = "; ".join(f"{one!s:.200}" for one in reversed(error.errors))
            raise ValueError(f"the value does not fit its schema: {found:.500}") from error
        except Exception as error:
            raise ValueError(f"the value does not fit its schema: {error!s:.500}") from error
        return buffer.getvalue()

    def read(self, data: bytes, reader: AvroDefinition | None = None) -> Value:
        """Decode a value from bytes that were written with this Avro schema.

        Args:
            data: The value encoded as Avro.
            reader: Avro schema that the resulting value should have; None for this same one.

        Raises:
            ValueError: The bytes do not encode a value of the Avro schema.
        """
        try:
            if reader is None and not self.is_deep:
                return fastavro.schemaless_reader(io.BytesIO(data), self.schema, None)
            value = self._read_in_python(data, reader)
        except Exception as error:
            why = "they end too early" if isinstance(error, EOFError) else f"{error!s:.500}"
            raise ValueError(f"{len(data)} bytes cannot be read as Avro: {why}") from error
        # Otherwise values share the definition's mutable defaults.
        return copy.deepcopy(value) if reader and reader.has_mutable_default else value

    def _read_in_python(self, data: bytes, reader: AvroDefinition | None) -> Value:
        named = {"writer": self._named, "reader": reader._named if reader else {}}
        schema = reader.schema if reader else None
        return read_data(_Decoder(data), self.schema, named, schema, {})  # type: ignore[no-untyped-call]

    def also_named(self, other: AvroDefinition) -> AvroDefinition:
        """Return this Avro schema with the name of another one's outermost record as an alias.

        Pulsar treats a renamed class as the same class.
        """
        records = isinstance(self.source, dict) and isinstance(other.schema, dict)
        if not records or "name" not in other.schema:
            return self
        aliases = [*self.source.get("aliases", ()), other.schema["name"]]
        return AvroDefinition(json.dumps({**self.source, "aliases": aliases}))


class _Decoder(BinaryDecoder):
    """An Avro decoder that limits encoded integers to ten bytes, unlike the library's own."""

    def __init__(self, data: bytes) -> None:
        self.fo = io.BytesIO(data)

    def read_long(self) -> int:
        number: int = 0
        for shift in range(0, 70, 7):
            byte: bytes = self.fo.read(1)
            if not byte:
                raise EOFError
            number |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a number takes more than ten bytes")

    read_int = read_long


def _parsed(source: Value, named: dict[str, Any]) -> Any:  # noqa: ANN401 - untyped in the library
    schema = fastavro.parse_schema(source, named)
    for field in _fields(named):
        default, kinds = field.get("default"), _kinds(field["type"])
        if isinstance(default, str) and kinds <= {"null", "bytes", "fixed"}:
            field["default"] = default.encode("latin-1")  # JSON's form of bytes.
    for one in schema if isinstance(schema, list) else [schema]:
        if isinstance(one, dict):  # The library marks only records, and parses the rest again.
            one.update({"__fastavro_parsed": True, "__named_schemas": named})
    return schema


def _fields(named: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in named.values():
        yield from one.get("fields", ())


def _kinds(part: Value) -> set[str]:
    parts = part if isinstance(part, list) else [part]
    return {one["type"] if isinstance(one, dict) else one for one in parts}


class _Extent:
    """The minimum size in bytes and the maximum depth of values of an Avro schema.

    Args:
        named: The types of the schema, keyed by name.
    """

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._known: dict[str, tuple[int, float]] = {}

    def of(self, part: Value) -> tuple[int, float]:
        if isinstance(part, list):
            found = [self.of(one) for one in part]
            return 1, max((depth for _, depth in found), default=0)
        kind = part["type"] if isinstance(part, dict) else part
        if kind in ("record", "error"):
            return self._record(part)
        if kind in ("array", "map"):
            return 1, self._depth_of_items(part) + 1
        if kind in self._named:
            return self.of(self._named[kind])
        return (max(part["size"], 0) if kind == "fixed" else int(kind != "null")), 0

    def _depth_of_items(self, part: dict[str, Any]) -> float:
        is_map = part["type"] == "map"
        least, depth = self.of(part["values" if is_map else "items"])
        if not (least or is_map):
            raise ValueError("the items of an array take no bytes: give them a field")
        return depth

    def _record(self, part: dict[str, Any]) -> tuple[int, float]:
        name = part["name"]
        if name not in self._known:
            # Recursive: unbounded, except in a union, array or map, which takes a byte.
            self._known[name] = 1, float("inf")
            found = [self.of(field["type"]) for field in part["fields"]]
            depth = max((one for _, one in found), default=0)
            self._known[name] = sum(one for one, _ in found), depth + 1
        return self._known[name]
