"""The types that a record's fields can have, under the official client's names."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self, TypeAlias

Value: TypeAlias = Any
"""A value of some type: which ones it takes, only the field or schema knows."""
Definition: TypeAlias = dict[str, Any] | str
"""A type in Avro's language: a name, or an object."""


class Element:
    """A part of a definition: a field's type, or a record.

    Args:
        default: What a value is that nobody gave.
        required: Whether null is no value of it.
        required_default: Whether the definition has the default.
    """

    def __init__(
        self, default: Value = None, required: bool = False, required_default: bool = False
    ) -> None:
        if default is not None:
            default = self.validate_type("default", default)
        self._default = default
        self._required = required
        self._required_default = required_default

    @classmethod
    def of(cls, found: object, where: str) -> Self:
        """Return an element, made if it is named by its class.

        Raises:
            TypeError: It is none.
        """
        if isinstance(found, type) and issubclass(found, cls):
            return found()
        if isinstance(found, cls):
            return found
        raise TypeError(f"{where} is a Record or a Field such as String(), not {found!r:.80}")

    def type(self) -> str:
        """Return the type's name in Avro."""
        raise NotImplementedError

    def python_type(self) -> Value:
        """Return what values are instances of."""
        raise NotImplementedError

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value as a record has it.

        Raises:
            TypeError: It is none of this type.
        """
        if val is None and not self._required:
            return self.default()
        if not isinstance(val, self.python_type()):
            raise self._unfit(name, val)
        return val

    def _converted(self, val: Value) -> Value:
        """Return a value for the one that JSON or Avro has in its place."""
        return val

    def schema(self) -> Definition:
        """Return the definition."""
        return self.schema_info(set())

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the definition; of what is defined already, the name.

        Args:
            defined_names: Names of the definition so far; those defined here are added.
        """
        return self.type()

    def default(self) -> Value:
        """Return what a value is that nobody gave."""
        return self._default

    def required_default(self) -> bool:
        """Tell whether the definition has the default."""
        return self._required_default

    def _unfit(self, name: str, val: object) -> TypeError:
        return TypeError(f"{name} is {_names(self.python_type())}, not {val!r:.80}")


class Field(Element):
    """A field's type. A type of a program's own derives from it."""


class Null(Field):
    """Nothing but None."""

    def type(self) -> str:
        """Return "null"."""
        return "null"

    def python_type(self) -> Value:
        """Return None's type."""
        return type(None)

    def validate_type(self, name: str, val: Value) -> Value:
        """Return None.

        Raises:
            TypeError: It is something else.
        """
        if val is not None:
            raise self._unfit(name, val)
        return val


class Boolean(Field):
    """True or False; False if nobody gave it."""

    def type(self) -> str:
        """Return "boolean"."""
        return "boolean"

    def python_type(self) -> Value:
        """Return bool."""
        return bool

    def default(self) -> Value:
        """Return the default, or False."""
        return self._default if self._default is not None else False


class Integer(Field):
    """A number of 32 bits."""

    def type(self) -> str:
        """Return "int"."""
        return "int"

    def python_type(self) -> Value:
        """Return int."""
        return int


class Long(Integer):
    """A number of 64 bits."""

    def type(self) -> str:
        """Return "long"."""
        return "long"


class Float(Field):
    """A floating-point number of 32 bits."""

    def type(self) -> str:
        """Return "float"."""
        return "float"

    def python_type(self) -> Value:
        """Return float and int."""
        return float, int


class Double(Float):
    """A floating-point number of 64 bits."""

    def type(self) -> str:
        """Return "double"."""
        return "double"


class Bytes(Field):
    """Bytes; text becomes UTF-8."""

    def type(self) -> str:
        """Return "bytes"."""
        return "bytes"

    def python_type(self) -> Value:
        """Return bytes and str."""
        return bytes, str

    def validate_type(self, name: str, val: Value) -> Value:
        """Return bytes, or None.

        Raises:
            TypeError: It is neither bytes nor text.
        """
        if val is None:
            return None
        val = super().validate_type(name, val)
        return val.encode() if isinstance(val, str) else val


class String(Field):
    """Text; bytes are read as UTF-8."""

    def type(self) -> str:
        """Return "string"."""
        return "string"

    def python_type(self) -> Value:
        """Return str and bytes."""
        return str, bytes

    def validate_type(self, name: str, val: Value) -> Value:
        """Return text.

        Raises:
            TypeError: It is neither text nor bytes.
        """
        val = super().validate_type(name, val)
        return val.decode() if isinstance(val, bytes) else val


class CustomEnum(Field):
    """A member of an enum; its name, or its value, becomes the member.

    Args:
        enum_type: The enum.
        default: As a field's; so are the others.
        required: See there.
        required_default: See there.
    """

    def __init__(
        self,
        enum_type: type[Enum],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        found: object = enum_type
        if not (isinstance(found, type) and issubclass(found, Enum)):
            raise TypeError(f"CustomEnum takes an Enum, not {enum_type!r:.80}")
        self.enum_type = enum_type
        super().__init__(default, required, required_default)

    def type(self) -> str:
        """Return "enum"."""
        return "enum"

    def python_type(self) -> Value:
        """Return the enum."""
        return self.enum_type

    def validate_type(self, name: str, val: Value) -> Value:
        """Return a member, or None.

        Raises:
            TypeError: The enum has no such member.
        """
        if val is None or isinstance(val, self.enum_type):
            return val
        if isinstance(val, str) and val in self.enum_type.__members__:
            return self.enum_type[val]
        try:
            return self.enum_type(val)
        except ValueError:
            known = ", ".join(self.enum_type.__members__)
            raise TypeError(
                f"{name} is one of {self.enum_type.__name__} ({known:.80}), not {val!r:.80}"
            ) from None

    def _converted(self, val: Value) -> Value:
        """Return the member of a name or value."""
        return self.validate_type(self.enum_type.__name__, val)

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the enum with the names of its members."""
        name = self.enum_type.__name__
        if name in defined_names:
            return name
        defined_names.add(name)
        return {"type": "enum", "name": name, "symbols": [one.name for one in self.enum_type]}


class Array(Field):
    """A list.

    Args:
        array_type: The type of its items.
        default: As a field's; so are the others.
        required: See there.
        required_default: See there.
    """

    def __init__(
        self,
        array_type: Element | type[Element],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        self.array_type = Element.of(array_type, "an Array's type")
        super().__init__(default, required, required_default)

    def type(self) -> str:
        """Return "array"."""
        return "array"

    def python_type(self) -> Value:
        """Return list."""
        return list

    def validate_type(self, name: str, val: Value) -> Value:
        """Return a list, or None.

        Raises:
            TypeError: It is no list, or has an item of another type.
        """
        if val is None:
            return None
        super().validate_type(name, val)
        kind = self.array_type.python_type()
        for item in val:
            if not isinstance(item, kind):
                raise TypeError(f"{name} has items that are {_names(kind)}, not {item!r:.80}")
        return val

    def _converted(self, val: Value) -> Value:
        """Return the list with every item converted."""
        if not isinstance(val, list):
            return val
        return [self.array_type._converted(item) for item in val]

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the array with the definition of its items."""
        return {"type": "array", "items": self.array_type.schema_info(defined_names)}


class Map(Field):
    """A dict whose keys are text.

    Args:
        value_type: The type of its values.
        default: As a field's; so are the others.
        required: See there.
        required_default: See there.
    """

    def __init__(
        self,
        value_type: Element | type[Element],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        self.value_type = Element.of(value_type, "a Map's type")
        super().__init__(default, required, required_default)

    def type(self) -> str:
        """Return "map"."""
        return "map"

    def python_type(self) -> Value:
        """Return dict."""
        return dict

    def validate_type(self, name: str, val: Value) -> Value:
        """Return a dict, or None.

        Raises:
            TypeError: It is no dict, or has a key or value of another type.
        """
        if val is None:
            return None
        super().validate_type(name, val)
        kind = self.value_type.python_type()
        for key, item in val.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} has keys that are str, not {key!r:.80}")
            if not isinstance(item, kind):
                raise TypeError(f"{name} has values that are {_names(kind)}, not {item!r:.80}")
        return val

    def _converted(self, val: Value) -> Value:
        """Return the dict with every value converted."""
        if not isinstance(val, dict):
            return val
        return {key: self.value_type._converted(item) for key, item in val.items()}

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the map with the definition of its values."""
        return {"type": "map", "values": self.value_type.schema_info(defined_names)}


def _names(kinds: Value) -> str:
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(kind.__name__ for kind in several)
