"""Types of record fields that contain other types: enums, arrays and maps."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from client.schema.fields import Element, Typed, class_names

if TYPE_CHECKING:
    from client.schema.fields import Definition, Holds, Value

EnumT = TypeVar("EnumT", bound=Enum)
HeldT = TypeVar("HeldT")


class CustomEnum(Typed[EnumT, EnumT | str | int]):
    """A field whose value is an enum member; names and values are converted to members.

    Args:
        enum_type: The enum class.
        default: As for Field, like the other arguments.
        required: As for Field.
        required_default: As for Field.
    """

    _avro = "enum"

    def __init__(
        self,
        enum_type: type[EnumT],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        found: object = enum_type
        if not (isinstance(found, type) and issubclass(found, Enum)):
            raise TypeError(f"CustomEnum takes an Enum, not {enum_type!r:.80}")
        self.enum_type = enum_type
        super().__init__(default, required, required_default)

    def python_type(self) -> Value:
        """Return the enum class."""
        return self.enum_type

    def validate_type(self, name: str, val: Value) -> Value:
        """Convert a member, name or value to the enum member; return None unchanged.

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
        """Convert the name or value of an enum member to the member."""
        return self.validate_type(self.enum_type.__name__, val)

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the Avro schema of the enum, with the names of its members."""
        name = self.enum_type.__name__
        if name in defined_names:
            return name
        defined_names.add(name)
        return {"type": "enum", "name": name, "symbols": [one.name for one in self.enum_type]}


class Array(Typed[list[HeldT], list[HeldT]]):
    """A field whose value is a list with items of one type.

    Args:
        array_type: The type of its items.
        default: As for Field, like the other arguments.
        required: As for Field.
        required_default: As for Field.
    """

    _avro = "array"
    _python = list

    def __init__(
        self,
        array_type: Holds[HeldT] | type[Holds[HeldT]],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        self.array_type = Element.of(array_type, "an Array's type")
        super().__init__(default, required, required_default)

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value after checking that it is a list of the right type, or None.

        Raises:
            TypeError: The value is not a list, or an item has another type.
        """
        if val is None:
            return None
        super().validate_type(name, val)
        kind = self.array_type.python_type()
        for item in val:
            if not isinstance(item, kind):
                raise TypeError(f"{name} has items that are {class_names(kind)}, not {item!r:.80}")
        return val

    def _converted(self, val: Value) -> Value:
        """Return the list with every item converted from its form in JSON or Avro."""
        if not isinstance(val, list):
            return val
        return [self.array_type._converted(item) for item in val]

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the Avro schema of the array, with that of its items."""
        return {"type": "array", "items": self.array_type.schema_info(defined_names)}


class Map(Typed[dict[str, HeldT], dict[str, HeldT]]):
    """A field whose value is a dict with string keys and values of one type.

    Args:
        value_type: The type of its values.
        default: As for Field, like the other arguments.
        required: As for Field.
        required_default: As for Field.
    """

    _avro = "map"
    _python = dict

    def __init__(
        self,
        value_type: Holds[HeldT] | type[Holds[HeldT]],
        default: Value = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        self.value_type = Element.of(value_type, "a Map's type")
        super().__init__(default, required, required_default)

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value after checking that it is a dict of the right types, or None.

        Raises:
            TypeError: The value is not a dict, or a key or value has another type.
        """
        if val is None:
            return None
        super().validate_type(name, val)
        kind = self.value_type.python_type()
        for key, item in val.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} has keys that are str, not {key!r:.80}")
            if not isinstance(item, kind):
                raise TypeError(f"{name} has values that are {class_names(kind)}, not {item!r:.80}")
        return val

    def _converted(self, val: Value) -> Value:
        """Return the dict with every value converted from its form in JSON or Avro."""
        if not isinstance(val, dict):
            return val
        return {key: self.value_type._converted(item) for key, item in val.items()}

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the Avro schema of the map, with that of its values."""
        return {"type": "map", "values": self.value_type.schema_info(defined_names)}
