"""Records, which are classes with one attribute for each field of a schema."""

from __future__ import annotations

import copy
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self
from uuid import UUID

from client.schema.compound_fields import CustomEnum
from client.schema.fields import Element

if TYPE_CHECKING:
    from client.schema.fields import Definition, Value

MAX_DEPTH = 64
"""Largest nesting depth of records, lists and dicts sent as Avro."""
_OWN = ("_default", "_required", "_required_default")
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


class Record(Element):
    """A value with named fields; a subclass declares each field as a class attribute.

    A field is a Field, a Record or an Enum; null is allowed unless ``required``.

    Example:
        class Order(Record):
            customer = String(required=True)
            lines = Array(Line())

        Order(customer="anna", lines=[Line(item="tea", count=2)])

    Args:
        default: Value of this record as a field of another record, if unset.
        required_default: Whether the Avro schema includes the default.
        required: True if the value must not be null.
        args: Has no effect.
        kwargs: Values of the fields. Unknown names, for example of a newer schema version, are
            ignored.
    """

    _avro_namespace: ClassVar[str | None] = None
    _sorted_fields: ClassVar[bool] = False
    _fields: ClassVar[dict[str, Element]] = {}

    if TYPE_CHECKING:

        def _held(self) -> Self: ...

    def __init_subclass__(cls, **kwargs: Value) -> None:
        super().__init_subclass__(**kwargs)
        # As in the official client, fields of a base class are not inherited.
        cls._fields = {}
        for name, value in vars(cls).items():
            if isinstance(value, type) and issubclass(value, Enum):
                cls._fields[name] = CustomEnum(value)
            elif isinstance(value, Element) or (
                isinstance(value, type) and issubclass(value, Record)
            ):
                cls._fields[name] = Element.of(value, name)

    def __init__(
        self,
        default: Value = None,
        required_default: bool = False,
        required: bool = False,
        *args: object,
        **kwargs: Value,
    ) -> None:
        self._default = default
        self._required_default = required_default
        self._required = required
        for name, element in self._fields.items():
            if name in kwargs:
                setattr(self, name, element._converted(kwargs[name]))
            elif isinstance(element, Record):
                object.__setattr__(self, name, copy.copy(element))
            else:
                object.__setattr__(self, name, element.default())

    def __setattr__(self, name: str, value: Value) -> None:
        if name not in _OWN:
            if name not in self._fields:
                raise AttributeError(
                    f"{type(self).__name__} has no field {name}: {', '.join(self._fields):.80}"
                )
            value = self._fields[name].validate_type(name, value)
        object.__setattr__(self, name, value)

    def type(self) -> str:
        """Return the name of the record's class."""
        return type(self).__name__

    def python_type(self) -> Value:
        """Return the record's class."""
        return type(self)

    def _converted(self, val: Value) -> Value:
        """Convert a dict of field values into a record."""
        return type(self)(**val) if isinstance(val, dict) else val

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the Avro schema of the record."""
        definition = cls.schema_info(set())
        assert isinstance(definition, dict)
        return definition

    @classmethod
    def schema_info(cls, defined_names: set[str]) -> Definition:
        """Return the Avro schema of the record, or only its full name if it is defined already."""
        namespace = cls._avro_namespace
        full_name = cls.__name__ if namespace is None else f"{namespace}.{cls.__name__}"
        if full_name in defined_names:
            return full_name
        defined_names.add(full_name)
        definition: dict[str, Any] = {"type": "record", "name": cls.__name__}
        if namespace is not None:
            definition["namespace"] = namespace
        names = sorted(cls._fields) if cls._sorted_fields else cls._fields
        definition["fields"] = [_field(name, cls._fields[name], defined_names) for name in names]
        return definition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and values_of(self) == values_of(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in values_of(self).items())
        return f"{type(self).__name__}({values})"


def values_of(record: Record) -> dict[str, Any]:
    """Return the values of a record, keyed by field name."""
    values = vars(record)
    return {name: values[name] for name in record._fields}


def _field(name: str, element: Element, defined_names: set[str]) -> dict[str, Any]:
    definition = element.schema_info(defined_names)
    field: dict[str, Any] = {"name": name}
    if element.required_default():
        field["default"] = as_avro(element.default())
    field["type"] = definition if element._required else ["null", definition]
    return field


def as_avro(value: Value, room: int = MAX_DEPTH) -> Value:
    """Convert a value for Avro: records become dicts, enum members become their names.

    Raises:
        ValueError: The value is deeper than MAX_DEPTH.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Record):
        value = values_of(value)
    if isinstance(value, list | tuple | dict):
        return _nested_as_avro(value, room)
    return str(value) if isinstance(value, UUID) else value


def _nested_as_avro(value: Value, room: int) -> Value:
    if not room:
        raise ValueError(f"the value is more than {MAX_DEPTH} records, lists and dicts deep")
    if isinstance(value, dict):
        return {key: as_avro(one, room - 1) for key, one in value.items()}
    if _PLAIN.issuperset(map(type, value)):
        return list(value)
    return [as_avro(one, room - 1) for one in value]
