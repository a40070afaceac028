"""YAML as values that know where they were written, so that a fault can be shown there."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadgen.errors import UsageError

_MOST_NODES = 500_000
"""Of one document; a few aliases of aliases would make any number."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_WORDS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,40})", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", r"<<", "<"),
)
"""The words that are no texts. YAML 1.1 has more: there ``010`` is 8, ``1:30`` is 90 and ``no`` is
false. As texts they are what their author saw, or are refused by the key that cannot have them."""


@dataclass(frozen=True, slots=True)
class Place:
    """The file and the line (from 1) at which something was written, or the option that says it."""

    file: Path | str
    line: int

    def __str__(self) -> str:
        return self.file if isinstance(self.file, str) else f"{self.file}, line {self.line}"

    @property
    def folder(self) -> Path:
        """The folder that names of files there are relative to."""
        return Path() if isinstance(self.file, str) else self.file.parent


@dataclass(frozen=True, slots=True)
class Written:
    """A value of a document: a mapping or a list of such values, or a plain one.

    Attributes:
        place: Of its key, or of the value itself in a list.
    """

    value: Any
    place: Place

    def at(self, part: str | int) -> Written | None:
        """Return the value of a key, or of a number; None if there is none."""
        if isinstance(self.value, dict | list):
            with suppress(LookupError, TypeError):
                found: Written = self.value[part]  # type: ignore[index]
                return found
        return None

    def plain(self) -> Any:  # noqa: ANN401
        """Return it without its places."""
        if isinstance(self.value, dict):
            return {key: each.plain() for key, each in self.value.items()}
        if isinstance(self.value, list):
            return [each.plain() for each in self.value]
        return self.value


def parse_tree(text: str, file: Path) -> Written:
    """Turn the text of a document into a tree; ``file`` is what places name.

    Raises:
        UsageError: It is no YAML mapping, or names a key twice; says the line.
    """
    tree = parse_values(text, file)
    if not isinstance(tree.value, dict):
        raise UsageError(
            f"{file} is not a scenario: one has clients, as `clients: [{{name: a, do: list, "
            "count: 10}]`; see: loadgen scenarios show restart-storm"
        )
    return tree


def parse_values(text: str, file: Path | str) -> Written:
    """Turn YAML of any form into values; ``file``, or an option, is what places name.

    Raises:
        UsageError: It is no YAML, or names a key twice; says the line.
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
    """Makes values of one text; reads as texts what YAML 1.1 takes for something else.

    Mutable state: the number of nodes so far, and the mappings whose keys were looked at.
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
            self.flatten_mapping(node)  # what a merge key (<<) brings stands before
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
        if id(node) not in self._looked_at:  # An alias comes again with what was merged into it.
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
