"""Documents in JSON, read strictly: dataclasses whose fields have a kind.

A kind reads a value, or says what is wrong with it, and describes in JSON schema what it reads.
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
    """A document is refused.

    Attributes:
        problems: A sentence for each problem.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Kind(Protocol):
    """The values of a field."""

    def read(self, value: Json) -> Any:  # noqa: ANN401 - any kind of value
        """Return the value of JSON.

        Raises:
            DocumentError: It is none.
        """

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """Return the JSON schema of accepted values; schemas of parts are added to ``parts``."""


@dataclass(frozen=True)
class Text:
    """A text.

    Attributes:
        most: Its most characters.
        pattern: For the schema: a regular expression of all texts that ``check`` accepts.
        check: Raises ValueError for others.
        least: Its fewest characters.
    """

    most: int
    pattern: str = ""
    check: Callable[[str], object] | None = None
    least: int = 1

    def read(self, value: Json) -> str:
        """See Kind."""
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
        """See Kind."""
        found = {"type": "string", "minLength": self.least, "maxLength": self.most}
        return {**found, **({"pattern": self.pattern} if self.pattern else {})}


@dataclass(frozen=True)
class Number:
    """A number within bounds; whole, unless they are fractions."""

    least: float
    most: float

    def read(self, value: Json) -> Any:  # noqa: ANN401 - int or float
        """See Kind."""
        is_whole = isinstance(self.least, int)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not self.least <= value <= self.most or (is_whole and value % 1):
            noun = (
                f"{'a whole number' if is_whole else 'a number'} from {self.least} to {self.most}"
            )
            raise DocumentError(f"{noun} is expected, not {_shown(value)}")
        return int(value) if is_whole else value

    def schema(self, _: dict[str, Schema]) -> Schema:
        """See Kind."""
        name = "integer" if isinstance(self.least, int) else "number"
        return {"type": name, "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Choice:
    """One of some names.

    Attributes:
        names: The names.
        refusal: What is said of another; None lists the names.
    """

    names: Collection[str]
    refusal: Callable[[str], str] | None = None

    def read(self, value: Json) -> str:
        """See Kind."""
        if isinstance(value, str) and value in self.names:
            return value
        if isinstance(value, str) and self.refusal is not None:
            raise DocumentError(self.refusal(value))
        raise DocumentError(f"{_shown(value)} is none of {', '.join(self.names)}")

    def schema(self, _: dict[str, Schema]) -> Schema:
        """See Kind."""
        return {"type": "string", "enum": sorted(self.names)}


@dataclass(frozen=True)
class Member:
    """A member of an enum, by its value."""

    enum: type[Enum]

    def read(self, value: Json) -> Enum:
        """See Kind."""
        return self.enum(self._choice().read(value))

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """See Kind."""
        return self._choice().schema(parts)

    def _choice(self) -> Choice:
        return Choice([str(member.value) for member in self.enum])


@dataclass(frozen=True)
class Several:
    """A list of values of one kind."""

    kind: Kind
    most: int

    def read(self, value: Json) -> tuple[Any, ...]:
        """See Kind."""
        if not isinstance(value, list | tuple) or len(value) > self.most:
            raise DocumentError(f"a list of at most {self.most} is expected")
        return tuple(_of_places((str(place), self.kind, one) for place, one in enumerate(value)))

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """See Kind."""
        return {"type": "array", "items": self.kind.schema(parts), "maxItems": self.most}


@dataclass(frozen=True)
class Nested:
    """A part; of several, the one whose action is in the document."""

    parts: tuple[type[Part], ...]

    def read(self, value: Json) -> Part:
        """See Kind."""
        by_action = {part.action: part for part in self.parts}
        action = value.get("action", "") if isinstance(value, dict) else ""
        if len(by_action) == 1:
            action = self.parts[0].action
        elif action not in list(by_action):
            raise DocumentError(f"action: {_shown(action)} is none of {', '.join(by_action)}")
        return by_action[action].of(value)

    def schema(self, parts: dict[str, Schema]) -> Schema:
        """See Kind."""
        references = {}
        for part in self.parts:
            parts[part.__name__] = part.own_schema(parts)
            references[part.action] = SCHEMA_REFERENCES.format(model=part.__name__)
        found = [{"$ref": reference} for reference in references.values()]
        if len(found) == 1:
            return found[0]
        return {"oneOf": found, "discriminator": {"propertyName": "action", "mapping": references}}


class Part:
    """A part of a document: a frozen dataclass whose fields have a ``kind``.

    A field named ``delay_ms`` is ``delayMs`` in JSON.

    Attributes:
        action: The value of ``action`` in all documents of the class; empty: they have none.
    """

    action: ClassVar[str] = ""

    @classmethod
    def _constants(cls) -> dict[str, str]:
        return {"action": cls.action} if cls.action else {}

    @classmethod
    def of(cls, document: Json) -> Self:
        """Read a document.

        Raises:
            DocumentError: It is refused; says every problem.
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
        """Read a document's text.

        Raises:
            DocumentError: It is refused, or is no JSON.
        """
        try:
            document = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            # The sentence on a number of thousands of digits has a remedy for programmers.
            said = str(error).partition("; use")[0]
            raise DocumentError(f"the body is no JSON: {said}") from None
        return cls.of(document)

    def check(self) -> None:
        """Refuse values that do not fit together.

        Raises:
            DocumentError: They do not.
        """

    def as_json(self) -> dict[str, object]:
        """Return the document, without defaults."""
        own = {
            _json_name(one.name): _as_json(getattr(self, one.name))
            for one in fields(self)  # type: ignore[arg-type]
            if getattr(self, one.name) != one.default
        }
        return {**self._constants(), **own}

    @classmethod
    def own_schema(cls, parts: dict[str, Schema]) -> Schema:
        """Return the schema, without the parts', which are added to ``parts``."""
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
        """Return the schema, with its parts' under ``$defs``."""
        parts: dict[str, Schema] = {}
        return {**cls.own_schema(parts), "$defs": parts}


def kind(of: Kind) -> dict[str, Kind]:
    """Return a dataclass field's metadata: its kind. Without a default the field is required."""
    return {"kind": of}


def _of_places(places: Iterable[tuple[str, Kind, Json]]) -> list[Any]:
    """Read values at their places; the problems of all say where."""
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
    """Return what joins a place and a problem, which may begin with a place within."""
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
