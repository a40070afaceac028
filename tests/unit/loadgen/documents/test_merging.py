"""What is laid over a document wins, and what it does not say stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.merging import merged
from loadgen.documents.tree import Branch, parse_tree, place_of

KEYS = st.sampled_from(["a", "b", "c", "name"])
LEAVES = st.one_of(st.none(), st.integers(), st.booleans(), st.sampled_from(["x", "y"]))
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner))
    ),
)


def tree(value: dict[str, Any], name: str = "m.yaml") -> Branch:
    return parse_tree(yaml.safe_dump(value), Path(name))


def leaves(value: Any, path: tuple = ()) -> dict[tuple, Any]:
    """The values of all mappings, with their paths; a list is a value."""
    if not isinstance(value, dict):
        return {path: value}
    return {
        each: v for key, inner in value.items() for each, v in leaves(inner, (*path, key)).items()
    }


@given(value=TREES)
def test_a_tree_is_the_yaml_it_was_read_from(value: dict[str, Any]) -> None:
    assert tree(value) == value


@given(value=TREES)
def test_a_document_over_itself_or_over_nothing_is_itself(value: dict[str, Any]) -> None:
    assert merged(tree(value), tree(value)) == value
    assert merged(tree({}), tree(value)) == value
    assert merged(tree(value), tree({})) == value


@given(base=TREES, over=TREES)
def test_what_is_laid_over_is_all_there_and_the_rest_is_the_bases(
    base: dict[str, Any], over: dict[str, Any]
) -> None:
    # When
    found = leaves(merged(tree(base), tree(over)))
    # Then
    wanted = {path: v for path, v in leaves(over).items() if not named_rows(v)}
    assert {path: found[path] for path in wanted} == wanted
    for path, value in found.items():
        assert leaves(over).get(path, leaves(base).get(path)) == value or named_rows(value)


def named_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def test_every_value_knows_the_file_and_line_that_it_came_from() -> None:
    # Given
    base = tree({"load": {"groups": [{"name": "a", "x": 1}, {"name": "b", "x": 1}]}}, "base.yaml")
    over = tree({"load": {"groups": [{"name": "b", "y": 2}]}}, "over.yaml")
    # When
    found = merged(base, over)
    # Then
    assert str(place_of(found, ("load", "groups", 1, "x"))) == "base.yaml, line 6"
    assert str(place_of(found, ("load", "groups", 1, "y"))) == "over.yaml, line 4"
    assert str(place_of(found, ("load", "groups", 0))) == "base.yaml, line 3"
