"""YAML values with file and line, merging of documents, and ``--set`` options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.errors import UsageError, meant
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_NODES = 500_000
"""Most nodes of a document; a few aliases of aliases could make any number."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_WORDS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,40})", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", r"<<", "<"),
)
"""The words that are not texts. YAML 1.1 has more: ``010`` is 8, ``1:30`` is 90, ``no`` is false.
Read as texts, the words of YAML 1.1 keep the author's meaning, or are refused by the key.
"""

_NAME = "name"
_SHARED = {"kind": (), "do": tuple(Group.model_fields)}
"""Keys kept from an extended document whose ``kind`` or ``do`` the extending document changes."""
_OPEN = {"broker", "proxy", "properties", "set"}
"""Mappings whose keys may contain dots, which a path would otherwise split."""
_LONGEST_SETTING = 100


@dataclass(frozen=True, slots=True)
class Place:
    """The file and line (from 1) of a value in a document, or the value's ``--set`` option."""

    file: Path | str
    line: int

    def __str__(self) -> str:
        return self.file if isinstance(self.file, str) else f"{self.file}, line {self.line}"

    @property
    def folder(self) -> Path:
        """The base folder of relative file names in the document."""
        return Path() if isinstance(self.file, str) else self.file.parent


@dataclass(frozen=True, slots=True)
class Written:
    """A YAML value with file and line: a mapping or list of such values, or a plain value.

    Attributes:
        place: Place of the value's key or, in a list, of the value.
    """

    value: Any
    place: Place

    @property
    def is_mapping(self) -> bool:
        """True if the value is a mapping of keys to values."""
        return isinstance(self.value, dict)

    def at(self, *path: str | int) -> Written | None:
        """Return the value at a path of keys and list indexes; None if the path does not exist."""
        found = self
        for part in path:
            if not isinstance(found.value, dict | list):
                return None
            try:
                found = found.value[part]  # type: ignore[index]
            except (LookupError, TypeError):
                return None
        return found

    def rows(self, key: str) -> list[Written]:
        """Return the items of the list at a key; empty if the key has no list."""
        found = self.at(key)
        return found.value if found and isinstance(found.value, list) else []

    def plain(self) -> Any:  # noqa: ANN401
        """Return the value as plain Python objects, without file and line."""
        if isinstance(self.value, dict):
            return {key: each.plain() for key, each in self.value.items()}
        if isinstance(self.value, list):
            return [each.plain() for each in self.value]
        return self.value


def parse_tree(text: str, file: Path) -> Written:
    """Parse the text of a scenario document into values with file and line.

    Raises:
        UsageError: The text is not a YAML mapping, or has a key twice; the message names the line.
    """
    tree = parse_values(text, file)
    if not isinstance(tree.value, dict):
        raise UsageError(
            f"{file} is not a scenario: one has clients, as `clients: [{{name: a, do: list, "
            "count: 10}]`; see: loadgen scenarios show restart-storm"
        )
    return tree


def parse_values(text: str, file: Path | str) -> Written:
    """Parse YAML text into values with file and line, or with the ``--set`` option.

    Raises:
        UsageError: The text is not YAML, or has a key twice; the message names the line.
    """
    try:
        loader = _Loader(text, file)
        node, place = loader.get_single_node(), Place(file, 1)
        return Written(None, place) if node is None else loader.written(node, place)
    except yaml.reader.ReaderError as error:
        place = Place(file, text.count("\n", 0, error.position) + 1)
        raise UsageError(
            f"{place}: the character U+{ord(text[error.position]):04X} cannot stand in "
            "YAML: remove it"
        ) from None
    except RecursionError:
        raise UsageError(
            f"{file} is nested too deeply, or an alias (*) stands within what it names"
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = Place(file, mark.line + 1) if mark else file
        problem = getattr(error, "problem", None) or str(error)[:200]
        raise UsageError(f"{where}: this is not YAML: {problem}") from None


class _Loader(yaml.SafeLoader):
    """A YAML loader of values with file and line.

    Special words of YAML 1.1, such as ``no`` and ``1:30``, are read as strings.

    Mutable state: the number of nodes so far, and the mappings with checked keys.
    """

    def __init__(self, text: str, file: Path | str) -> None:
        super().__init__(text)
        self._file = file
        self._nodes = 0
        self._looked_at: set[int] = set()

    def written(self, node: yaml.Node, place: Place) -> Written:
        self._nodes += 1
        self._bound(self._nodes)
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)  # puts the keys of a merge key (<<) first
            pairs = ((str(key.value), value, self._place(key)) for key, value in node.value)
            return Written({key: self.written(*value) for key, *value in pairs}, place)
        if isinstance(node, yaml.SequenceNode):
            return Written([self.written(each, self._place(each)) for each in node.value], place)
        try:
            return Written(self.construct_object(node), place)
        except (ValueError, LookupError, AttributeError):  # as of !!bool x
            said = f"{str(node.value)[:60]!r} is no {node.tag.removeprefix(_TAG)}"
            raise UsageError(f"{self._place(node)}: {said}") from None

    def _check_keys(self, node: yaml.MappingNode) -> None:
        known: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{self._place(key)}: a key has to be a word")
            if key.value in known:
                raise UsageError(f"{self._place(key)}: {str(key.value)[:60]} is there twice")
            known.add(str(key.value))

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if id(node) not in self._looked_at:  # A later alias already includes the merged keys.
            self._check_keys(node)
            self._looked_at.add(id(node))
        super().flatten_mapping(node)
        self._bound(len(node.value))

    def _bound(self, nodes: int) -> None:
        if nodes > _MOST_NODES:
            raise UsageError(
                f"{self._file} has more than {_MOST_NODES:,} values, each alias (*) counted with "
                "all below it"
            )

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._file, node.start_mark.line + 1)


_Loader.yaml_implicit_resolvers = {}
for _name, _form, _first in _PLAIN_WORDS:
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(f"(?:{_form})$"), list(_first))


# -- one tree over another ----


def merged(base: Written, over: Written) -> Written:
    """Return document ``base`` overlaid with ``over``, whose values take precedence.

    Mappings are merged key by key. If both have a ``kind`` and the kinds differ, the base's keys
    are dropped; if both have a ``do``, the keys common to all behaviours stay. Lists of named
    values are merged by name. Other values of ``over`` replace those of ``base``.
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
    """Return the items of a list by their ``name``; empty unless all have different names."""
    values = row.value if isinstance(row.value, list) else []
    names = [str(name.value) for each in values if (name := each.at(_NAME)) is not None]
    return dict(zip(names, values, strict=True)) if len({*names}) == len(values) else {}


def with_setting(tree: Written, setting: str) -> Written:
    """Return a document changed by one ``--set`` option.

    ``path=value`` sets a value; ``path+=value`` appends a value to a list.

    A path names values of lists by name, or else by number from 0.

    Raises:
        UsageError: The option has another form, or names an item absent from the list.
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
        """Return ``base`` with the new value set at the path's parts from ``number`` on."""
        rows = base.value if isinstance(base.value, list) else None
        if number == len(parts):
            return Written([*(rows or ()), value], value.place) if path.endswith("+") else value
        if rows is not None:
            if parts[number + 1 :] == [_NAME]:
                raise UsageError(f"{place}: the name of a list's value cannot be changed")
            row = _number(rows, parts, number, place)
            inner = merged(rows[row], laid(rows[row], number + 1))
            return Written([*rows[:row], inner, *rows[row + 1 :]], base.place)
        key, whose = parts[number], base if isinstance(base.value, dict) else value
        inner = laid(base.at(key) or Written(None, value.place), number + 1)
        return merged(base, Written({key: inner}, whose.place))

    return laid(tree, 0)


def _number(rows: Sequence[Written], parts: Sequence[str], number: int, place: str) -> int:
    """Return the index of the list item named by part ``number`` of a ``--set`` path."""
    key, found = parts[number], [(each.at(_NAME), str(n)) for n, each in enumerate(rows)]
    names = [str(name.value) if name is not None else n for name, n in found]
    if key not in names:
        above = ".".join(parts[:number])
        raise UsageError(f"{place}: {above} has no {key[:60]}{meant(key, names)}")
    return names.index(key)
