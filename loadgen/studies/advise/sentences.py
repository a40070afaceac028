"""The sentences of an advice, read from ``sentences.yaml`` by name, with placeholders."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.studies.advise.goal import percent
from loadgen.units import format_bytes, format_seconds, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS: dict[str, Callable[[Any], str]] = {
    "b": format_bytes,
    "c": partial(plural, singular="client"),
    "p": percent,
    "m": lambda millis: format_seconds(millis / 1000),
    "t": format_seconds,
    "v": rate_text,
}


class _Figures(Formatter):
    """A string formatter that writes values with units, as in ``{size!b}`` for bytes."""

    def convert_field(self, value: Any, conversion: Any) -> Any:  # noqa: ANN401 - as its base
        """Format a value with the unit for which a letter stands, such as ``b`` for bytes."""
        return _UNITS[conversion](value) if conversion else value


@cache
def sentences() -> dict[str, str]:
    """Return all sentences of ``sentences.yaml`` by name."""
    file = Path(__file__).with_name("sentences.yaml")
    found: dict[str, str] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def said(name: str, **figures: Any) -> str:  # noqa: ANN401
    """Return the sentence stored under a name, with its placeholders filled in."""
    return _Figures().format(sentences()[name], **figures)
