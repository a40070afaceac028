"""Field types of records, under the official client's names."""

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
"""A value; only its field or schema knows the type."""
Definition: TypeAlias = dict[str, Any] | str
"""A type in Avro's language: a name, or an object."""
GotT = TypeVar("GotT")
GivenT = TypeVar("GivenT")
HeldT_co = TypeVar("HeldT_co", covariant=True)


class Holds(Protocol[HeldT_co]):
    """A field type or record in the eyes of type checkers, by the type of its values."""

    def _held(self) -> HeldT_co: ...


class Element:
    """A part of a definition: a field type, or a record.

    Args:
        default: The value of an unset field.
        required: Whether null is excluded.
        required_default: Whether the definition includes the default.
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
        """Return an element, instantiated if given as a class.

        Raises:
            TypeError: The argument is not an element.
        """
        if isinstance(found, type) and issubclass(found, cls):
            return found()
        if isinstance(found, cls):
            return found
        raise TypeError(f"{where} is a Record or a Field such as String(), not {found!r:.80}")

    def type(self) -> str:
        """Return the name of the element's type in Avro."""
        return self._avro

    def python_type(self) -> Value:
        """Return the class, or classes, of the element's values."""
        return self._python

    def validate_type(self, name: str, val: Value) -> Value:
        """Return the value as stored in a record.

        Raises:
            TypeError: The value has another type.
        """
        if val is None and not self._required:
            return self.default()
        if not isinstance(val, self.python_type()):
            raise self._unfit(name, val)
        return val

    def _converted(self, val: Value) -> Value:
        """Return the value for its JSON or Avro form."""
        return val

    def schema(self) -> Definition:
        """Return the element's Avro definition."""
        return self.schema_info(set())

    def schema_info(self, defined_names: set[str]) -> Definition:
        """Return the Avro definition; only the name if it was already defined.

        Args:
            defined_names: Names already defined; new names are added.
        """
        return self.type()

    def default(self) -> Value:
        """Return the value of an unset field."""
        return self._default

    def required_default(self) -> bool:
        """Tell whether the definition includes the default."""
        return self._required_default

    def _unfit(self, name: str, val: object) -> TypeError:
        return TypeError(f"{name} is {class_names(self.python_type())}, not {val!r:.80}")


class Field(Element):
    """Base class of field types, also of a program's own."""

    if TYPE_CHECKING:  # for type checkers, attributes of records have their values' types

        def _held(self) -> Any: ...  # noqa: ANN401 - unknown for a program's own types
        @overload
        def __get__(self, instance: None, owner: type[Any]) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type[Any]) -> Any: ...  # noqa: ANN401
        def __get__(self, instance: object, owner: type[Any]) -> Any: ...
        def __set__(self, instance: object, value: Any) -> None: ...  # noqa: ANN401


class Typed(Field, Generic[GotT, GivenT]):
    """A field with value types for type checkers: read type and assigned type.

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
    """Only None."""

    _avro = "null"
    _python = type(None)

    def validate_type(self, name: str, val: Value) -> Value:
        """Return None.

        Raises:
            TypeError: The value is not None.
        """
        if val is not None:
            raise self._unfit(name, val)
        return val


class Boolean(Typed[bool, bool]):
    """True or False; False if unset."""

    _avro = "boolean"
    _python = bool

    def default(self) -> Value:
        """Return the default, or False."""
        return self._default if self._default is not None else False


class Integer(Typed[int, int]):
    """An integer of 32 bits."""

    _avro = "int"
    _python = int


class Long(Integer):
    """An integer of 64 bits."""

    _avro = "long"


class Float(Typed[float, float]):
    """A floating-point number of 32 bits."""

    _avro = "float"
    _python = float, int


class Double(Float):
    """A floating-point number of 64 bits."""

    _avro = "double"


class Bytes(Typed[bytes, bytes | str]):
    """Bytes; text becomes UTF-8."""

    _avro = "bytes"
    _python = bytes, str

    def validate_type(self, name: str, val: Value) -> Value:
        """Return bytes, or None.

        Raises:
            TypeError: The value is neither bytes nor text.
        """
        if val is None:
            return None
        val = super().validate_type(name, val)
        return val.encode() if isinstance(val, str) else val


class String(Typed[str, str | bytes]):
    """Text; bytes are read as UTF-8."""

    _avro = "string"
    _python = str, bytes

    def validate_type(self, name: str, val: Value) -> Value:
        """Return text.

        Raises:
            TypeError: The value is neither text nor bytes.
        """
        val = super().validate_type(name, val)
        return val.decode() if isinstance(val, bytes) else val


def class_names(kinds: Value) -> str:
    """Return the names of a class or several, for a sentence."""
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(kind.__name__ for kind in several)
