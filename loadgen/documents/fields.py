"""The types of a document's values: numbers with units, names, patterns.

``30s``, ``250ms``, ``64KiB``, ``100kB/s``, ``50/s`` and ``10%`` are numbers here; a plain number is
in the unit of the field: seconds, bytes, bytes a second, times a second, a share of 1.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import re2
import regex
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from loadgen.errors import UsageError
from loadgen.units import parse_rate, parse_size

MOST_SECONDS = 86_400.0
MOST_CLIENTS = 1_000_000
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(ms|s|m|min|h)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class Part(BaseModel):
    """A part of a document: what it does not know is refused, what it has never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _number(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    """Refuse true and false, which are 1 and 0 to Python."""
    if isinstance(value, bool):
        raise ValueError("must be a number or a text")  # noqa: TRY004 - pydantic passes it on
    return value


def _seconds(value: Any) -> Any:  # noqa: ANN401
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, str) and found is None and not _is_number(value):
        raise ValueError("must be a time such as 30s, 5m or 250ms")
    return _number(value) if found is None else round(float(found[1]) * _SECONDS[found[2]], 12)


def _per_second(value: Any) -> Any:  # noqa: ANN401
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, str) and found is None and not _is_number(value):
        raise ValueError("must be a rate such as 50/s")
    return _number(value) if found is None else round(float(found[1]) / _SECONDS[found[2]], 12)


def _share(value: Any) -> Any:  # noqa: ANN401
    found = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    return _number(value) if found is None else round(float(found[1]) / 100, 12)


def _bytes(value: Any) -> Any:  # noqa: ANN401
    try:
        return int(parse_size("", value)) if isinstance(value, str) else _number(value)
    except UsageError:
        raise ValueError("must be a size such as 64KiB or 100kB") from None


def _bytes_per_second(value: Any) -> Any:  # noqa: ANN401
    try:
        return parse_rate("", value) if isinstance(value, str) else _number(value)
    except UsageError:
        raise ValueError("must be a speed such as 100kB/s") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _expression(pattern: str) -> str:
    """Return a pattern that a broker's engine has: RE2, or for the rest a backtracking one.

    Raises:
        ValueError: It is no regular expression.
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
                f"no broker has this regular expression: {error}; all topics are .*"
            ) from None
    return pattern


Moment = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=MOST_SECONDS)]
"""Seconds, 0 included: since the agreed start, or of something that may be left out."""
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=MOST_SECONDS)]
Rate = Annotated[float, BeforeValidator(_per_second), Field(gt=0, le=1_000_000)]
Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=0, le=1 << 30)]
Speed = Annotated[float, BeforeValidator(_bytes_per_second), Field(ge=0)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1, le=MOST_CLIENTS)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Pattern = Annotated[str, AfterValidator(_expression)]
"""A regular expression of topics' names."""
