"""Types of record fields, with the official client's names."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

Value: TypeAlias = Any
"""A value whose type only its field or schema knows."""
Definition: TypeAlias = dict[str, Any] | str
"""An Avro schema: the name of a type, or an object."""
GotT = TypeVar("GotT")
GivenT = TypeVar("GivenT")
HeldT_co = TypeVar("HeldT_co", covariant=True)


class Holds(Protocol[HeldT_co]):
    """A field type or record as type checkers see it: generic in the type of its values."""

    def _held(self) -> HeldT_co: ...


class Element:
    """The base of all types in a record's schema: field types and records.

    Args:
        default: The value of an unset field.
        required: True if the value must not be null.
        required_default: Whether the Avro schema includes the default.
    """

    _avro: ClassVar[str]
    _python: ClassVar[Value]

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
        """Return a field type or record, created first if its class is given.

        Raises:
            TypeError: The argument is not an element.
        """
        if isinstance(found, type) and issubclass(found, cls):
            return found()
        if isinstance(found, cls):
            return found
        raise TypeError(f"{where} is a Record or a Field such as String(), not {found!r:.80}")

    def type(self) -> str:
        """Return the name of this type in Avro."""
        return self._avro

    def python_type(self) -> Value:
        """Return the Python class or classes of the values."""
        return self._python

    def validate_type(self, name: str, val: Value) -> Value:
        """Check the type of a value; return the value to store in a record.

        Raises:
            TypeError: The value has another type.
        """
        if val is None and not self._required:
            return self.default()
        if not isinstance(val, self.python_type()):
            raise self._unfit(name, val)
        return val

    def _converted(self, val: Value) -> Value:
        """Convert a value from its form in JSON or Avro."""
        return val

    def schema(self) -> Definition:
        """Return the Avro schema of this type."""
        return self.schema_info(set())

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the Avro schema of this type, or only its name if it is defined already.

        Args:
            defined_names: Names of types that are defined already; newly defined names are added.
        """
        return self.type()

    def default(self) -> Value:
        """Return the value that an unset field has."""
        return self._default

    def required_default(self) -> bool:
        """Return True if the Avro schema includes the default."""
        return self._required_default

    def _unfit(self, name: str, val: object) -> TypeError:
        return TypeError(f"{name} is {class_names(self.python_type())}, not {val!r:.80}")


class Field(Element):
    """Base class of field types, including those that an application defines."""

    if TYPE_CHECKING:  # for type checkers, attributes of records have their values' types

        def _held(self) -> Any: ...  # noqa: ANN401 - unknown for a program's own types
        @overload
        def __get__(self, instance: None, owner: type[Any]) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type[Any]) -> Any: ...  # noqa: ANN401
        def __get__(self, instance: object, owner: type[Any]) -> Any: ...
        def __set__(self, instance: object, value: Any) -> None: ...  # noqa: ANN401


class Typed(Field, Generic[GotT, GivenT]):
    """A field type that declares to type checkers which values it returns and accepts.

    The read type omits None, so that programs can use values without checks.
    """

    if TYPE_CHECKING:

        def _held(self) -> GotT: ...
        @overload
        def __get__(self, instance: None, owner: type[Any]) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type[Any]) -> GotT: ...
        def __get__(self, instance: object, owner: type[Any]) -> Self | GotT: ...
        def __set__(self, instance: object, value: GivenT | None) -> None: ...


class Null(Typed[None, None]):
    """A field whose value is always None."""

    _avro = "null"
    _python = type(None)

    def validate_type(self, name: str, val: Value) -> Value:
        """Return None, after checking that the value is None.

        Raises:
            TypeError: The value is not None.
        """
        if val is not None:
            raise self._unfit(name, val)
        return val


class Boolean(Typed[bool, bool]):
    """A field whose value is True or False; unset, it is False."""

    _avro = "boolean"
    _python = bool

    def default(self) -> Value:
        """Return the declared default, otherwise False."""
        return self._default if self._default is not None else False


class Integer(Typed[int, int]):
    """A field whose value is a 32-bit integer."""

    _avro = "int"
    _python = int


class Long(Integer):
    """A field whose value is a 64-bit integer."""

    _avro = "long"


class Float(Typed[float, float]):
    """A field whose value is a 32-bit floating-point number."""

    _avro = "float"
    _python = float, int


class Double(Float):
    """A field whose value is a 64-bit floating-point number."""

    _avro = "double"


class Bytes(Typed[bytes, bytes | str]):
    """A field whose value is bytes; a string is encoded as UTF-8."""

    _avro = "bytes"
    _python = bytes, str

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value as bytes, or None; a string is encoded as UTF-8.

        Raises:
            TypeError: The value is neither bytes nor text.
        """
        if val is None:
            return None
        val = super().validate_type(name, val)
        return val.encode() if isinstance(val, str) else val


class String(Typed[str, str | bytes]):
    """A field whose value is a string; bytes are decoded as UTF-8."""

    _avro = "string"
    _python = str, bytes

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value as a string; bytes are decoded as UTF-8.

        Raises:
            TypeError: The value is neither text nor bytes.
        """
        val = super().validate_type(name, val)
        return val.decode() if isinstance(val, bytes) else val


def class_names(kinds: Value) -> str:
    """Return the names of one or several classes, joined by "or" for an error text."""
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(kind.__name__ for kind in several)
