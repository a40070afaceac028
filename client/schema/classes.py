"""Derivation of Avro schemas from dataclasses and pydantic models."""

from __future__ import annotations

import dataclasses
import re
import types
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.schema.fields import Value

Kind: TypeAlias = Any
"""A class, or a generic type such as ``list[int]``."""
Part: TypeAlias = Any
"""A type within an Avro schema: a name, an object, or a list for a union."""
_ANNOTATED: tuple[Kind, ...] = (Annotated,)
_MISSING = object()
_PRIMITIVES: dict[Kind, str] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
}
_AVRO_LOGICAL: dict[Kind, Part] = {
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    UUID: {"type": "string", "logicalType": "uuid"},
}
_JSON_TEXTS: dict[Kind, Part] = dict.fromkeys((date, datetime, time, Decimal, UUID), "string")
_REMEDY = "take another type, or give the definition yourself as schema_definition"


class Derived(NamedTuple):
    """The Avro schema derived from a type, and a converter of decoded values.

    Attributes:
        definition: The Avro schema.
        read: Function that converts the names of enum members in a value to members; None if there
            are no enums.
    """

    definition: Part
    read: Callable[[Value], Value] | None = None


def is_described(kind: object) -> bool:
    """Return True if an object is a dataclass or a pydantic model class."""
    is_class = isinstance(kind, type)
    return is_class and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"))


def derived(kind: type, *, as_json: bool) -> Derived:
    """Derive an Avro schema from a dataclass or pydantic model.

    Args:
        kind: The dataclass or pydantic model.
        as_json: Whether values are sent as JSON, where dates and similar types are text.

    Raises:
        TypeError: A field's type is unknown to Avro.
    """
    return _Derivation(_JSON_TEXTS if as_json else _AVRO_LOGICAL).record(kind, kind.__name__)


class _Derivation:
    """The derivation of an Avro schema from a class.

    Each class within is defined once; later uses give its name.
    """

    def __init__(self, others: dict[Kind, Part]) -> None:
        self._words = {**_PRIMITIVES, **others}
        self._classes: dict[str, type] = {}
        self._readers: dict[type, Callable[[Value], Value] | None] = {}

    def _of(self, kind: Kind, where: str) -> Derived:
        kind = _plain(kind)
        if kind in self._words:
            return Derived(self._words[kind])
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._enum(kind)
        if is_described(kind):
            return self.record(kind, where)
        return self._form(kind, where)

    def _form(self, kind: Kind, where: str) -> Derived:
        origin: Kind = get_origin(kind)
        arguments = get_args(kind)
        if origin is Literal and all(isinstance(one, str) for one in arguments):
            return Derived("string")
        if origin in (Union, types.UnionType):
            return self._union(arguments, where)
        if origin is list or (origin is tuple and arguments[1:] == (...,)):
            items = self._of(arguments[0], where)
            return Derived({"type": "array", "items": items.definition}, _of_items(items.read))
        if origin is dict and arguments[0] is str:
            values = self._of(arguments[1], where)
            return Derived({"type": "map", "values": values.definition}, _of_values(values.read))
        raise TypeError(f"{where}: a schema has no type for {kind!r:.80}: {_REMEDY}")

    def _enum(self, kind: type[Enum]) -> Derived:
        name, known = self._name(kind)
        symbols = [one.name for one in kind]
        definition = {"type": "enum", "name": name, "symbols": symbols}
        return Derived(name if known else definition, kind.__getitem__)

    def record(self, kind: type, where: str) -> Derived:
        name, known = self._name(kind)
        if known:
            # Possibly recursive: its enums are known only when a value is read.
            return Derived(name, lambda value: _read(self._readers.get(kind), value))
        fields, readers = [], {}
        for field_name, field_kind, default in _fields_of(kind):
            found = self._of(field_kind, f"{where}.{field_name}")
            fields.append(_field(field_name, found.definition, default))
            if found.read is not None:
                readers[field_name] = found.read
        self._readers[kind] = _of_fields(readers)
        return Derived({"type": "record", "name": name, "fields": fields}, self._readers[kind])

    def _union(self, kinds: tuple[Kind, ...], where: str) -> Derived:
        found = [self._of(one, where) for one in kinds]
        # Null first, as in a Record: most fields' default.
        found.sort(key=lambda one: one.definition != "null")
        reads = [one.read for one in found if one.read is not None]
        if reads and len(found) > 2:
            raise TypeError(f"{where}: in a union an enum stands only with None: {_REMEDY}")
        return Derived([one.definition for one in found], reads[0] if reads else None)

    def _name(self, kind: type) -> tuple[str, bool]:
        name = re.sub(r"\W", "_", kind.__name__)
        known = self._classes.get(name)
        if known is not None and known is not kind:
            raise TypeError(f"a schema has two classes that are named {name}: rename one of them")
        self._classes[name] = kind
        return name, known is not None


def _plain(kind: Kind) -> Kind:
    """Return the underlying type of a NewType or Annotated type."""
    while isinstance(kind, NewType) or get_origin(kind) in _ANNOTATED:
        kind = kind.__supertype__ if isinstance(kind, NewType) else get_args(kind)[0]
    return kind


def _fields_of(kind: Kind) -> Iterator[tuple[str, Kind, object]]:
    """Yield the name, type and default of each field of a class."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        for one in dataclasses.fields(kind):
            default = _MISSING if one.default is dataclasses.MISSING else one.default
            yield one.name, hints[one.name], _made(one.default_factory, default)
        return
    for name, info in kind.model_fields.items():
        default = _MISSING if info.is_required() else info.default
        alias = info.serialization_alias or info.alias or name
        yield alias, info.annotation, _made(info.default_factory, default)


def _made(factory: object, default: object) -> object:
    """Return the default value of a class's field.

    A factory is called only if it certainly creates an empty list or dict.
    """
    if factory in (list, dict):
        return [] if factory is list else {}
    return default if factory in (None, dataclasses.MISSING) else _MISSING


def _field(name: str, definition: Part, default: object) -> dict[str, Part]:
    """Return the Avro schema of a field, with its default if Avro can express it."""
    if isinstance(default, Enum):
        default = default.name
    plain = default is None or isinstance(default, bool | int | float | str | list | dict)
    nullable = isinstance(definition, list) and definition[0] == "null"
    if not plain or (default is None and not nullable):
        return {"name": name, "type": definition}
    if default is not None and nullable:
        definition = [*definition[1:], "null"]  # A default belongs to the union's first type.
    return {"name": name, "default": default, "type": definition}


def _read(read: Callable[[Value], Value] | None, value: Value) -> Value:
    return value if read is None or value is None else read(value)


def _of_fields(readers: dict[str, Callable[[Value], Value]]) -> Callable[[Value], Value] | None:
    if not readers:
        return None

    def read(value: dict[str, Value]) -> dict[str, Value]:
        return {name: _read(readers.get(name), one) for name, one in value.items()}

    return read


def _of_items(read: Callable[[Value], Value] | None) -> Callable[[Value], Value] | None:
    return None if read is None else lambda items: [_read(read, one) for one in items]


def _of_values(read: Callable[[Value], Value] | None) -> Callable[[Value], Value] | None:
    return None if read is None else lambda pairs: {k: _read(read, v) for k, v in pairs.items()}
