"""Strict validation of JSON documents into dataclasses that declare the kind of each field.

A kind reads a field's JSON value, or says what is wrong with it, and describes the accepted values
in JSON schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

from proto.excerpts import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

Json: TypeAlias = Any
"""A value of JSON."""
Schema: TypeAlias = dict[str, Any]


SCHEMA_REFERENCES = "#/components/schemas/{model}"
"""A reference of a schema to a part under its ``$defs``, shared by a whole description."""


class DocumentError(ValueError):
    """A JSON document is invalid.

    Attributes:
        problems: A sentence for each problem.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Kind(Protocol):
    """The kind of a field, which validates its JSON value and describes it in JSON schema."""

    def read(self, value: Json) -> Any:  # noqa: ANN401 - any kind of value
        """Validate a JSON value, and return it as the field's value.

        Raises:
            DocumentError: The value is invalid.
        """

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted values.

        Schemas of inner objects are added to ``parts``.
        """


@dataclass(frozen=True)
class Text:
    """The kind of a field with a JSON string of limited length.

    Attributes:
        most: The largest number of characters.
        pattern: For the schema: a regular expression of all texts that ``check`` accepts.
        check: Raises ValueError for a text that is not accepted.
        least: The smallest number of characters.
    """

    most: int
    pattern: str = ""
    check: Callable[[str], object] | None = None
    least: int = 1

    def read(self, value: Json) -> str:
        """Validate a JSON string, and return it."""
        if not isinstance(value, str) or not self.least <= len(value) <= self.most:
            noun = f"a text of {self.least} to {self.most} characters"
            raise DocumentError(f"{noun} is expected, not {_shown(value)}")
        if any("\ud800" <= each <= "\udfff" for each in value):
            raise DocumentError(f"Unicode text is expected, not {_shown(value)}")
        if self.check is not None:
            try:
                self.check(value)
            except ValueError as error:
                raise DocumentError(str(error)) from None
        return value

    def schema(self, _: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted strings."""
        found = {"type": "string", "minLength": self.least, "maxLength": self.most}
        return {**found, **({"pattern": self.pattern} if self.pattern else {})}


@dataclass(frozen=True)
class Number:
    """The kind of a field with a JSON number within bounds: whole, if the bounds are whole."""

    least: float
    most: float

    def read(self, value: Json) -> Any:  # noqa: ANN401 - int or float
        """Validate a JSON number, and return it."""
        is_whole = isinstance(self.least, int)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not self.least <= value <= self.most or (is_whole and value % 1):
            noun = (
                f"{'a whole number' if is_whole else 'a number'} from {self.least} to {self.most}"
            )
            raise DocumentError(f"{noun} is expected, not {_shown(value)}")
        return int(value) if is_whole else value

    def schema(self, _: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted numbers."""
        name = "integer" if isinstance(self.least, int) else "number"
        return {"type": name, "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Choice:
    """The kind of a field with one of the given JSON strings.

    Attributes:
        names: The names.
        refusal: Returns the error for any other name; None for an error that lists the names.
    """

    names: Collection[str]
    refusal: Callable[[str], str] | None = None

    def read(self, value: Json) -> str:
        """Validate a JSON string, and return it."""
        if isinstance(value, str) and value in self.names:
            return value
        if isinstance(value, str) and self.refusal is not None:
            raise DocumentError(self.refusal(value))
        raise DocumentError(f"{_shown(value)} is none of {', '.join(self.names)}")

    def schema(self, _: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted strings."""
        return {"type": "string", "enum": sorted(self.names)}


@dataclass(frozen=True)
class Member:
    """The kind of a field with a JSON string that is the value of an enum's member."""

    enum: type[Enum]

    def read(self, value: Json) -> Enum:
        """Validate a JSON string, and return the enum's member with this value."""
        return self.enum(self._choice().read(value))

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted strings."""
        return self._choice().schema(parts)

    def _choice(self) -> Choice:
        return Choice([str(member.value) for member in self.enum])


@dataclass(frozen=True)
class Several:
    """The kind of a field with a JSON array, whose items all have one kind."""

    kind: Kind
    most: int

    def read(self, value: Json) -> tuple[Any, ...]:
        """Validate a JSON array, and return it as a tuple."""
        if not isinstance(value, list | tuple) or len(value) > self.most:
            raise DocumentError(f"a list of at most {self.most} is expected")
        return tuple(_of_places((str(place), self.kind, one) for place, one in enumerate(value)))

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted arrays."""
        return {"type": "array", "items": self.kind.schema(parts), "maxItems": self.most}


@dataclass(frozen=True)
class Nested:
    """The kind of a field with a JSON object; its ``action`` selects one of several classes."""

    parts: tuple[type[Part], ...]

    def read(self, value: Json) -> Part:
        """Validate a JSON object, and return it as a Part."""
        by_action = {part.action: part for part in self.parts}
        action = value.get("action", "") if isinstance(value, dict) else ""
        if len(by_action) == 1:
            action = self.parts[0].action
        elif action not in list(by_action):
            raise DocumentError(f"action: {_shown(action)} is none of {', '.join(by_action)}")
        return by_action[action].of(value)

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the accepted objects."""
        references = {}
        for part in self.parts:
            parts[part.__name__] = part.own_schema(parts)
            references[part.action] = SCHEMA_REFERENCES.format(model=part.__name__)
        found = [{"$ref": reference} for reference in references.values()]
        if len(found) == 1:
            return found[0]
        return {"oneOf": found, "discriminator": {"propertyName": "action", "mapping": references}}


class Part:
    """Base class of JSON objects as frozen dataclasses that declare the kind of each field.

    A field named ``delay_ms`` is ``delayMs`` in JSON.

    Attributes:
        action: The value of ``action`` in documents of this class; empty if they have none.
    """

    action: ClassVar[str] = ""

    @classmethod
    def _constants(cls) -> dict[str, str]:
        return {"action": cls.action} if cls.action else {}

    @classmethod
    def of(cls, document: Json) -> Self:
        """Validate a parsed JSON document, and return an instance of the class.

        Raises:
            DocumentError: The document is invalid; the error lists every problem.
        """
        if not isinstance(document, dict):
            raise DocumentError("an object is expected")
        known = {_json_name(one.name): one for one in fields(cls)}  # type: ignore[arg-type]
        problems = [
            f"{str(name)[:50]}: no such key; there are {', '.join([*cls._constants(), *known])}"
            for name in document
            if name not in known and name not in cls._constants()
        ]
        problems += [
            f"{name}: is missing"
            for name, one in known.items()
            if name not in document and one.default is MISSING
        ]
        given = {
            one.name: (name, one.metadata["kind"], document[name])
            for name, one in known.items()
            if name in document and not (document[name] is None and one.default is None)
        }
        values: dict[str, Any] = {}
        try:
            values = dict(zip(given, _of_places(given.values()), strict=True))
        except DocumentError as error:
            problems += error.problems
        if problems:
            raise DocumentError(*problems)
        made = cls(**values)
        made.check()
        return made

    @classmethod
    def of_json(cls, text: bytes) -> Self:
        """Parse and validate the text of a JSON document.

        Raises:
            DocumentError: The document is invalid, or the text is no JSON.
        """
        try:
            document = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            # The sentence on a number of thousands of digits has a remedy for programmers.
            said = str(error).partition("; use")[0]
            raise DocumentError(f"the body is not JSON: {said}") from None
        return cls.of(document)

    def check(self) -> None:
        """Raise an error if values of different fields contradict each other; a no-op by default.

        Raises:
            DocumentError: Some values contradict each other.
        """

    def as_json(self) -> dict[str, object]:
        """Return the document as a JSON object, without the fields that equal their default."""
        own = {
            _json_name(one.name): _as_json(getattr(self, one.name))
            for one in fields(self)  # type: ignore[arg-type]
            if getattr(self, one.name) != one.default
        }
        return {**self._constants(), **own}

    @classmethod
    def own_schema(cls, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the class; add those of inner objects to ``parts``."""
        properties: dict[str, Schema] = {
            name: {"const": it, "type": "string"} for name, it in cls._constants().items()
        }
        required = [*cls._constants()]
        for one in fields(cls):  # type: ignore[arg-type]
            name = _json_name(one.name)
            properties[name] = one.metadata["kind"].schema(parts)
            if one.default is MISSING:
                required.append(name)
            elif one.default is not None:
                properties[name] = {**properties[name], "default": _as_json(one.default)}
        found = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**found, **({"required": required} if required else {})}

    @classmethod
    def schema(cls) -> Schema:
        """Return the JSON schema of the class, with those of inner objects under ``$defs``."""
        parts: dict[str, Schema] = {}
        return {**cls.own_schema(parts), "$defs": parts}


def kind(of: Kind) -> dict[str, Kind]:
    """Return the dataclass field's metadata that declares its kind.

    A field without a default is required.
    """
    return {"kind": of}


def _of_places(places: Iterable[tuple[str, Kind, Json]]) -> list[Any]:
    """Validate the values of several fields; each problem begins with the name of its field."""
    values: list[Any] = []
    problems: list[str] = []
    for place, kind, value in places:
        try:
            values.append(kind.read(value))
        except DocumentError as error:
            problems += [f"{place}{_before(text)}{text}" for text in error.problems]
    if problems:
        raise DocumentError(*problems)
    return values


def _shown(value: Json) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quoted(value) if isinstance(value, str) else str(value)[:50]


def _before(text: str) -> str:
    """Return the text between a field's name and a problem: a dot before an inner field's name.

    The problem may begin with the name of an inner field.
    """
    return "." if _PLACE.match(text) else ": "


_PLACE = re.compile(r"[\w.]+: ")


def _as_json(value: object) -> object:
    if isinstance(value, Part):
        return value.as_json()
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))
