"""Lays a document over the one that it extends, and settings (``--set path=value``) over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.documents.faults import meant
from loadgen.documents.tree import Branch, Place, Row, parse_values
from loadgen.errors import UsageError
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = "name"
_OWN = (_NAME, "extends")
"""Keys that belong to one document and are never inherited."""
_SHARED = {"kind": (), "do": tuple(Group.model_fields)}
"""What stays of a mapping of which another says that it is of another kind."""
_OPEN = {"broker", "proxy", "properties", "set"}
"""Keys of mappings whose own keys may have dots."""
_LONGEST_SETTING = 100


def merged_documents(base: Branch, over: Branch) -> Branch:
    """Return a document laid over its base."""
    kept = {key: value for key, value in base.items() if key not in _OWN}
    return merged(Branch(kept, base.places), over)


def merged(base: Branch, over: Branch) -> Branch:
    """Return a mapping laid over another.

    Mappings are merged key by key; where both say their ``kind`` and it differs nothing of the base
    stays, and where they say their ``do``, what all behaviours have. Lists of named values are
    merged by name; all else is replaced.
    """
    kept = dict(base)
    for tag, shared in _SHARED.items():
        if tag in base and tag in over and base[tag] != over[tag]:
            kept = {key: value for key, value in base.items() if key in shared}
    both = {key: _merged_value(kept[key], over[key]) for key in kept.keys() & over.keys()}
    return Branch({**kept, **over, **both}, {**base.places, **over.places})


def _merged_value(base: Any, over: Any) -> Any:  # noqa: ANN401
    if isinstance(base, Branch) and isinstance(over, Branch):
        return merged(base, over)
    return _merged_rows(base, over) if _named(base) and _named(over) else over


def _named(row: Any) -> bool:  # noqa: ANN401
    values = row if isinstance(row, Row) else []
    return bool(values) and all(isinstance(each, Branch) and _NAME in each for each in values)


def _merged_rows(base: Row, over: Row) -> Row:
    """Return the base's values, each with what is laid over it, and then those that are new."""
    found: dict[str, tuple[Branch, Place]] = {}
    for row in (base, over):
        for value, place in zip(row, row.places, strict=True):
            name = str(value[_NAME])
            found[name] = (merged(found[name][0], value) if name in found else value, place)
    return Row([value for value, _ in found.values()], [place for _, place in found.values()])


def with_setting(tree: Branch, setting: str) -> Branch:
    """Return a tree with ``path=value`` laid over it, or with a value more: ``path+=value``.

    A path names values of lists by their name, or else by their number from 0.

    Raises:
        UsageError: It is not of this form, or names a value of a list that is not there.
    """
    path, equals, text = setting.partition("=")
    parts = path.removesuffix("+").strip().split(".")
    place = Place(f"--set {setting[:_LONGEST_SETTING]}", 0)
    if not equals or not all(parts):
        raise UsageError(f"{place}: write PATH=VALUE, as clients.consumers.count=500")
    value = parse_values(text, str(place))
    if path.endswith("+"):
        value = Row([value], [place])
    found: Branch = _laid(tree, parts, (value, place, path.endswith("+")), ())
    return found


def _laid(
    tree: Any,  # noqa: ANN401
    parts: Sequence[str],
    setting: tuple[Any, Place, bool],
    above: tuple[str, ...],
) -> Any:  # noqa: ANN401
    value, place, is_more = setting
    if not parts:
        if is_more and isinstance(tree, Row):
            return Row([*tree, *value], [*tree.places, place])
        return value
    key, *rest = parts if _OPEN.isdisjoint(above[-1:]) else [".".join(parts)]
    if isinstance(tree, Row):
        number = _number(tree, key, above, place)
        laid = _laid(tree[number], rest, setting, (*above, key))
        if isinstance(laid, Branch) and isinstance(tree[number], Branch):
            laid = merged(tree[number], laid)
        return Row([*tree[:number], laid, *tree[number + 1 :]], tree.places)
    base = tree if isinstance(tree, Branch) else Branch({}, {})
    laid = _laid(base.get(key), rest, setting, (*above, key))
    return merged(base, Branch({key: laid}, {key: place}))


def _number(row: Row, key: str, above: Sequence[str], place: Place) -> int:
    """Return the number of the value of a list that a part of a path means."""
    names = [
        str(each[_NAME]) if isinstance(each, Branch) and _NAME in each else str(number)
        for number, each in enumerate(row)
    ]
    if key not in names:
        list_name = ".".join(above)
        raise UsageError(f"{place}: {list_name} has no {key[:60]}{meant(key, names)}")
    return names.index(key)
