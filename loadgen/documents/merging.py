"""Lays a document over the one that it extends, and settings (``--set path=value``) over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.documents.faults import meant
from loadgen.documents.tree import Written, parse_values
from loadgen.errors import UsageError
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = "name"
_SHARED = {"kind": (), "do": tuple(Group.model_fields)}
"""What stays of a mapping of which another says that it is of another kind."""
_OPEN = {"broker", "proxy", "properties", "set"}
"""Keys of mappings whose own keys may have dots; a group may have such a name."""
_LONGEST_SETTING = 100


def merged(base: Written, over: Written) -> Written:
    """Return a value laid over another.

    Mappings are merged key by key; where both say their ``kind`` and it differs nothing of the base
    stays, and where they say their ``do``, what all behaviours have. Lists of named values are
    merged by name; all else is replaced.
    """
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        kept = base.value
        for tag, shared in _SHARED.items():
            said = [each.value[tag].value for each in (base, over) if tag in each.value]
            if len(said) > 1 and said[0] != said[1]:
                kept = {key: value for key, value in base.value.items() if key in shared}
        return Written(_laid_over(kept, over.value), over.place)
    rows = [_by_name(each) for each in (base, over)]
    return Written([*_laid_over(*rows).values()], over.place) if all(rows) else over


def _laid_over(base: dict[str, Written], over: dict[str, Written]) -> dict[str, Written]:
    both = {key: merged(base[key], over[key]) for key in base.keys() & over.keys()}
    return {**base, **over, **both}


def _by_name(row: Written) -> dict[str, Written]:
    """Return the values of a list by their names; nothing if not each has one of its own."""
    values = row.value if isinstance(row.value, list) else []
    names = [str(name.value) for each in values if (name := each.at(_NAME)) is not None]
    return dict(zip(names, values, strict=True)) if len({*names}) == len(values) else {}


def with_setting(tree: Written, setting: str) -> Written:
    """Return a tree with ``path=value`` laid over it, or with a value more: ``path+=value``.

    A path names values of lists by their name, or else by their number from 0.

    Raises:
        UsageError: It is not of this form, or names a value of a list that is not there.
    """
    path, equals, text = setting.partition("=")
    parts = path.removesuffix("+").strip().split(".")
    place = f"--set {setting[:_LONGEST_SETTING]}"
    if not equals or not all(parts):
        raise UsageError(f"{place}: write PATH=VALUE, as clients.consumers.count=500")
    value = parse_values(text, place)
    first = 2 if parts[0] == "clients" else 0
    opened = next((n for n, part in enumerate(parts, 1) if n > first and part in _OPEN), len(parts))
    parts[opened:] = [".".join(parts[opened:])] * (opened < len(parts))

    def laid(base: Written, number: int) -> Written:
        """Lay the value over what the first parts of the path have led to."""
        rows = base.value if isinstance(base.value, list) else None
        if number == len(parts):
            return Written([*(rows or ()), value], value.place) if path.endswith("+") else value
        if rows is not None:
            if parts[number + 1 :] == [_NAME]:
                raise UsageError(f"{place}: a value of a list is known by its name, which stays")
            row = _number(rows, parts, number, place)
            inner = merged(rows[row], laid(rows[row], number + 1))
            return Written([*rows[:row], inner, *rows[row + 1 :]], base.place)
        key, whose = parts[number], base if isinstance(base.value, dict) else value
        inner = laid(base.at(key) or Written(None, value.place), number + 1)
        return merged(base, Written({key: inner}, whose.place))

    return laid(tree, 0)


def _number(rows: Sequence[Written], parts: Sequence[str], number: int, place: str) -> int:
    """Return the number of the value of a list that a part of a path means."""
    key, found = parts[number], [(each.at(_NAME), str(n)) for n, each in enumerate(rows)]
    names = [str(name.value) if name is not None else n for name, n in found]
    if key not in names:
        above = ".".join(parts[:number])
        raise UsageError(f"{place}: {above} has no {key[:60]}{meant(key, names)}")
    return names.index(key)
