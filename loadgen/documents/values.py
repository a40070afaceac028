"""Values with units: ``100kB/s``, ``64KiB``, ``30s``, ``5m``, ``50/s``, ``10%``.

The name of a key says what it holds, as for the options of the command line: ``..._bytes`` is a
size, ``..._bytes_per_second`` a speed, ``..._seconds`` a time, ``..._per_second`` a rate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from loadgen.documents.tree import Branch, Row
from loadgen.errors import UsageError
from loadgen.units import parse_rate, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(ms|s|m|min|h)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_TEXTS = ("properties", "pattern", "name", "description", "broker", "proxy")
"""Keys whose values, and all below, are what they are."""
_NUMBERED = ("load", "repeats", "cluster")
_SWITCHES = ("never",)
"""Keys whose values are true or false; to pydantic true is 1 for all others."""


def plain(
    tree: Any,  # noqa: ANN401
    path: tuple[str | int, ...] = (),
    on_fault: Callable[[Sequence[str | int], str], None] = lambda path, sentence: None,
) -> Any:  # noqa: ANN401
    """Return a tree as plain values, units made numbers; what is none is told and kept."""
    if isinstance(tree, Branch):
        return {
            key: value if key in _TEXTS else plain(value, (*path, key), on_fault)
            for key, value in tree.items()
        }
    if isinstance(tree, Row):
        return [plain(value, (*path, place), on_fault) for place, value in enumerate(tree)]
    if isinstance(tree, bool) and path[0] in _NUMBERED and path[-1] not in _SWITCHES:
        on_fault(path, f"{str(tree).lower()}: must be a number or a text")
    if not isinstance(tree, str):
        return tree
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    try:
        return number(key, tree)
    except UsageError as error:
        on_fault(path, str(error).removeprefix(key).strip())
        return tree


def number(key: str, text: str) -> str | float:
    """Return the number that a text with a unit is; the text where its key holds none.

    Raises:
        UsageError: It should be one and is not.
    """
    if share := _SHARE.fullmatch(text.strip()):
        return round(float(share[1]) / 100, 12)
    if key.endswith("_bytes_per_second"):
        return parse_rate(key, text)
    if key.endswith("_bytes"):
        return int(parse_size(key, text))
    if key.endswith("per_second"):
        return _parsed(_RATE, key, text, "a rate such as 50/s", lambda each, unit: each / unit)
    if key.endswith("seconds") or key == "seconds_each":
        return _parsed(
            _DURATION, key, text, "a time such as 30s, 5m or 250ms", lambda each, unit: each * unit
        )
    return text


def _parsed(
    form: re.Pattern[str], key: str, text: str, wanted: str, value: Callable[[float, float], float]
) -> float:
    if _NUMBER.fullmatch(text.strip()):
        return float(text)
    found = form.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{key} {text[:60]!r} is not {wanted}")
    return round(value(float(found[1]), _SECONDS[found[2]]), 12)


def texts(keys: Branch) -> dict[str, str]:
    """Return configuration keys as a file has them: YAML's numbers and switches as words."""
    return {key: _text(value) for key, value in keys.items()}


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
