"""The types of a scenario document's values: numbers with units, names, patterns.

``30s``, ``250ms``, ``64KiB``, ``100kB/s``, ``50/s`` and ``10%`` are numbers here; a plain number is
in the unit of the field: seconds, bytes, bytes a second, times a second, a share of 1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import re2
import regex
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core.core_schema import no_info_before_validator_function

from loadgen.errors import UsageError
from loadgen.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

MOST_SECONDS = 86_400
MOST_OF_A_GROUP = 1_000_000
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PLAIN = re.compile(r"[-+]?\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Part(BaseModel):
    """Base class of all pydantic models of a document: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Spoken:
    """A field type whose values documents write as text such as ``30s``, or as a number.

    Args:
        schema: JSON schema of the text form.
        read: Converts a text to the value, and returns other values unchanged.
    """

    def __init__(self, schema: dict[str, Any], read: Callable[[Any], Any]) -> None:
        self._schema, self._read = schema, read

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:  # noqa: ANN401
        """Return the pydantic schema by which a field of this type is validated."""
        return no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON schema of a field of this type."""
        return {"anyOf": [handler(core_schema), self._schema]}


def _number(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    """Refuse the values true and false, which Python counts as the numbers 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number or a text")  # noqa: TRY004 - pydantic passes it on
    return value


def _unit(form: str, said: str, number: Callable[..., float]) -> Spoken:
    """Return the field type of numbers that may be written with a unit, such as ``30s``."""
    expression = re.compile(rf"(\d+(?:\.\d+)?)\s*{form}")

    def read(value: Any) -> Any:  # noqa: ANN401
        found = expression.fullmatch(value.strip()) if isinstance(value, str) else None
        if isinstance(value, str) and not found and not _PLAIN.fullmatch(value.strip()):
            raise ValueError(f"must be {said}")
        return _number(value) if found is None else round(number(*found.groups()), 12)

    return Spoken({"type": "string", "pattern": rf"^\d+(\.\d+)?\s*{form}$"}, read)


def _size(said: str, suffix: str = "") -> Spoken:
    """Return the field type of sizes in bytes, or of speeds in bytes a second."""

    def read(value: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, str):
            return _number(value)
        try:
            found = parse_size("", value, suffix=suffix)
            return found if suffix else round(found)  # 1.3MiB is a fraction of bytes
        except UsageError:
            raise ValueError(f"must be {said}") from None

    return Spoken({"type": "string", "pattern": r"^\d"}, read)


def _expression(pattern: str) -> str:
    """Check that a broker can compile a pattern, by RE2 or a backtracking engine; return it.

    Raises:
        ValueError: The pattern is not a regular expression.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise ValueError(
                f"no broker can compile this regular expression: {error}; .* is all topics"
            ) from None
    return pattern


def _in_tenant(value: str) -> str:
    if len([part for part in value.split("/") if part]) != 2 or value.count("/") != 1:
        raise ValueError("must be a namespace with its tenant, such as public/default")
    return value


def _word(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be of small letters, digits and -, at most 40 of them")
    return value


_TIME = _unit(
    "(ms|s|m|min|h)",
    "a time such as 30s, 5m or 250ms",
    lambda many, unit: float(many) * _SECONDS[unit],
)
_RATE = _unit(
    r"/\s*(ms|s|m|min|h)", "a rate such as 50/s", lambda many, unit: float(many) / _SECONDS[unit]
)
_SHARE = _unit("%", "a share such as 10%", lambda many: float(many) / 100)
Whole = Annotated[int, BeforeValidator(_number)]
Moment = Annotated[float, Field(ge=0, le=MOST_SECONDS), _TIME]
"""Seconds, 0 included: since the agreed start, or an optional duration."""
Duration = Annotated[float, Field(gt=0, le=MOST_SECONDS), _TIME]
Rate = Annotated[float, Field(gt=0, le=1_000_000), _RATE]
RateOrNone = Annotated[float, Field(ge=0, le=1_000_000), _RATE]
"""Requests or starts a second, 0 included."""
Share = Annotated[float, Field(ge=0, le=1), _SHARE]
Bytes = Annotated[int, Field(ge=0, le=1 << 30), _size("a size such as 64KiB or 100kB")]
Speed = Annotated[float, Field(ge=0), _size("a speed such as 100kB/s", "/s")]
Count = Annotated[Whole, Field(ge=1, le=MOST_OF_A_GROUP)]
Name = Annotated[str, AfterValidator(_word)]
NamespaceName = Annotated[str, AfterValidator(_in_tenant)]
Pattern = Annotated[str, AfterValidator(_expression)]
"""A regular expression of topics' names."""
