"""Lays a document over the one that it extends."""

from __future__ import annotations

from typing import Any

from loadgen.documents.tree import Branch, Place, Row

_KIND, _LOAD, _NAME = "kind", "load", "name"
_OWN = (_NAME, "extends")
"""Keys that belong to one document and are never inherited."""


def merged_documents(base: Branch, over: Branch) -> Branch:
    """Return a document laid over its base.

    Another kind of scenario has another load, so nothing of the base's load is left then.
    """
    dropped = {*_OWN}
    if _differs(base, over):
        dropped |= {_KIND, _LOAD}
    kept = {key: value for key, value in base.items() if key not in dropped}
    return merged(Branch(kept, base.places), over)


def merged(base: Branch, over: Branch) -> Branch:
    """Return a mapping laid over another.

    Mappings are merged key by key, unless both say their ``kind`` and it differs; lists of named
    values are merged by name; all else is replaced.
    """
    if _differs(base, over):
        return over
    values, places = dict(base), {**base.places, **over.places}
    for key, value in over.items():
        values[key] = _merged_value(base[key], value) if key in base else value
    return Branch(values, places)


def _differs(base: Branch, over: Branch) -> bool:
    return _KIND in base and _KIND in over and base[_KIND] != over[_KIND]


def _merged_value(base: Any, over: Any) -> Any:  # noqa: ANN401
    if isinstance(base, Branch) and isinstance(over, Branch):
        return merged(base, over)
    if isinstance(base, Row) and isinstance(over, Row) and _named(base) and _named(over):
        return _merged_rows(base, over)
    return over


def _named(row: Row) -> bool:
    return bool(row) and all(isinstance(each, Branch) and _NAME in each for each in row)


def _merged_rows(base: Row, over: Row) -> Row:
    """Return the base's values, each with what is laid over it, and then those that are new."""
    found: dict[str, tuple[Branch, Place]] = {}
    for row in (base, over):
        for value, place in zip(row, row.places, strict=True):
            name = str(value[_NAME])
            found[name] = (merged(found[name][0], value) if name in found else value, place)
    return Row([value for value, _ in found.values()], [place for _, place in found.values()])
