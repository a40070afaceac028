"""Overlays win, and unmentioned values stay."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.faults import located
from loadgen.documents.tree import Written, merged, parse_tree, with_setting
from loadgen.errors import UsageError

KEYS = st.sampled_from(["a", "b", "c", "name"])
LEAVES = st.one_of(st.none(), st.integers(), st.booleans(), st.sampled_from(["x", "y"]))
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner))
    ),
)


def tree(value: dict[str, Any], name: str = "m.yaml") -> Written:
    return parse_tree(yaml.safe_dump(value), Path(name))


def leaves(value: Any, path: tuple = ()) -> dict[tuple, Any]:
    """Return the leaves of all mappings, with paths; a list is a leaf."""
    if not isinstance(value, dict):
        return {path: value}
    return {
        each: v for key, inner in value.items() for each, v in leaves(inner, (*path, key)).items()
    }


@given(value=TREES)
def test_merging_a_document_with_itself_or_an_empty_document_changes_no_value(
    value: dict[str, Any],
) -> None:
    assert tree(value).plain() == value
    assert merged(tree(value), tree(value)).plain() == value
    assert merged(tree({}), tree(value)).plain() == value
    assert merged(tree(value), tree({})).plain() == value


@given(base=TREES, over=TREES)
def test_a_merged_document_has_all_overlay_values_and_the_rest_of_the_base(base, over) -> None:
    found = leaves(merged(tree(base), tree(over)).plain())
    wanted = {path: v for path, v in leaves(over).items() if not named_rows(v)}
    assert {path: found[path] for path in wanted} == wanted
    for path, value in found.items():
        assert leaves(over).get(path, leaves(base).get(path)) == value or named_rows(value)


def named_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def test_every_merged_value_is_located_by_its_file_and_line_or_setting() -> None:
    base = tree({"load": {"groups": [{"name": "a", "x": 1}, {"name": "b", "x": 1}]}}, "base.yaml")
    over = tree({"load": {"groups": [{"name": "b", "y": 2}]}}, "over.yaml")
    found = with_setting(merged(base, over), "load.groups.a.z=3")
    assert str(located(found, ("load", "groups", 1, "x"))[0]) == "base.yaml, line 6"
    assert str(located(found, ("load", "groups", 1, "y"))[0]) == "over.yaml, line 4"
    assert str(located(found, ("load", "groups", 0, "x"))[0]) == "base.yaml, line 4"
    assert str(located(found, ("load", "groups", 0, "z"))[0]) == "--set load.groups.a.z=3"


@pytest.mark.parametrize(
    ("base", "over", "found"),
    [
        ({"kind": "constant", "rate": 1}, {"kind": "burst"}, {"kind": "burst"}),
        ({"kind": "burst", "count": 1}, {"count": 2}, {"kind": "burst", "count": 2}),
        (
            {"do": "list", "count": 1, "pipelined": 2},
            {"do": "watch"},
            {"do": "watch", "count": 1},
        ),
    ],
)
def test_overriding_the_kind_keeps_only_keys_that_both_kinds_have(
    base: dict, over: dict, found: dict
) -> None:
    assert merged(tree(base), tree(over)).plain() == found


GROUPS = [{"name": "go", "do": "list", "count": 1}, {"name": "cpp", "do": "list", "count": 2}]


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("clients.cpp.count=5", ("clients", 1, "count"), 5),
        ("clients.cpp.every=5s", ("clients", 1, "every"), "5s"),
        ("clients.go.arrive={kind: burst}", ("clients", 0, "arrive"), {"kind": "burst"}),
        ("clients.go.properties.a.b=c", ("clients", 0, "properties"), {"a.b": "c"}),
        ("servers.broker.x.y=010", ("servers", "broker"), {"x.y": "010"}),
        ("servers.proxy=", ("servers", "proxy"), None),
        ("seed = 7", ("seed",), 7),
        ("expect+=list.p99 == 2s", ("expect",), ["a", "list.p99 == 2s"]),
        ("shocks+={at: 8s, kill: broker}", ("shocks",), [{"at": "8s", "kill": "broker"}]),
        ("clients+={name: new}", ("clients", 2), {"name": "new"}),
        ("expect.0=b", ("expect",), ["b"]),
    ],
)
def test_a_setting_changes_the_value_at_its_path(setting: str, path: tuple, value: Any) -> None:
    found: Any = with_setting(tree({"clients": GROUPS, "expect": ["a"]}), setting).plain()
    assert [each["name"] for each in found["clients"]][:2] == ["go", "cpp"]
    for part in path:
        found = found[part]
    assert found == value


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("count", "--set count: write PATH=VALUE, as clients.consumers.count=500"),
        ("a..b=1", "--set a..b=1: write PATH=VALUE"),
        ("clients.cp.count=1", "--set clients.cp.count=1: clients has no cp; did you mean cpp?"),
        ("expect.1=b", "--set expect.1=b: expect has no 1; there are 0"),
        ("seed=[", "--set seed=[: this is not YAML: "),
        ("clients.go.name=b", "--set clients.go.name=b: the name of a list's value"),
    ],
)
def test_an_invalid_setting_is_refused_with_the_reason(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_setting(tree({"clients": GROUPS, "expect": ["a"]}), setting)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("name", ["broker", "proxy", "set", "properties"])
def test_a_group_may_be_named_like_a_key_with_dotted_subkeys(name: str) -> None:
    found = with_setting(tree({"clients": [{"name": name}]}), f"clients.{name}.read.rate=5")
    assert found.plain() == {"clients": [{"name": name, "read": {"rate": 5}}]}
