"""Documents with other values: short paths, every combination, and faults in one sentence."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.sweeps.variation import (
    Range,
    Value,
    Varied,
    grid,
    parse_grid,
    parse_range,
    parse_varied,
    with_values,
)

DOCUMENT = parse_document("""
name: mixed
kind: discovery
cluster:
  broker: {maxTopicListInFlightHeapMemSizeMB: 50}
  topics: {namespaces: 2, per_namespace: 100}
load:
  groups:
    - {name: java, family: java-watch, clients: 30, arrivals: {kind: constant, per_second: 10}}
    - {name: scripts, family: cpp, clients: 10}
""")


def test_a_key_and_its_values_are_read_with_their_types() -> None:
    assert parse_varied("broker.k=10,20") == Varied("broker.k", (10, 20))
    assert parse_varied("profile=pulsar,floodgate").values == ("pulsar", "floodgate")
    assert parse_varied("pause=true, 0.5").values == (True, 0.5)
    assert parse_varied("k=010,no,1:30").values == ("010", "no", "1:30"), "as in a document"
    assert parse_range("arrivals.per_second=10..1000") == Range("arrivals.per_second", 10, 1000)


def test_a_grid_has_its_values_as_a_document_has_them() -> None:
    # When
    found = parse_grid("k: [10, 010, true, 'a,b']\nseeds.of: [0.5]", Path("grid.yaml"))
    # Then
    assert found == [Varied("k", (10, "010", True, "a,b")), Varied("seeds.of", (0.5,))]


@pytest.mark.parametrize("text", ["broker.k", "=1,2", "k=", "k=,"])
def test_values_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the form PATH=VALUE,VALUE"):
        parse_varied(text)


@pytest.mark.parametrize("text", ["k=1", "k=1..", "k=5..5", "k=a..b", "..", "k=true..9"])
def test_ends_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not of the form PATH=LOW\.\.HIGH"):
        parse_range(text)


def test_each_combination_comes_with_each_seed() -> None:
    # When
    points = list(grid([Varied("a", (1, 2)), Varied("b", ("x",))], [1, 2]))
    # Then
    assert points == [
        {"a": 1, "b": "x", "seed": 1},
        {"a": 1, "b": "x", "seed": 2},
        {"a": 2, "b": "x", "seed": 1},
        {"a": 2, "b": "x", "seed": 2},
    ]


def test_a_grid_that_is_too_large_or_names_a_key_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="the grid has 10,001 points"):
        list(islice(grid([Varied("a", (1,))], range(10_001)), 1))
    with pytest.raises(UsageError, match="--vary a is there twice"):
        list(grid([Varied("a", (1,)), Varied("a", (2,))], [1]))
    with pytest.raises(UsageError, match="--vary a has a value twice: use --seeds"):
        list(grid([Varied("a", (2, 1, 2))], [1]))


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("broker.maxTopicListInFlightHeapMemSizeMB", 7, "cluster.broker"),
        ("topics.per_namespace", 50, "cluster.topics"),
        ("profile", "pulsar", "cluster"),
        ("seed", 9, "load"),
        ("phases.measure_seconds", 5.0, "load.phases"),
    ],
)
def test_a_path_sets_its_key(path: str, value: object, found: str) -> None:
    # When
    place = with_values(DOCUMENT, {path: value}).resolved()  # type: ignore[dict-item]
    for name in found.split("."):
        place = place[name]
    # Then
    assert str(place[path.rpartition(".")[2]]) == str(value)


def test_what_is_a_groups_alone_is_set_in_all_groups_that_have_it() -> None:
    # When
    changed = with_values(DOCUMENT, {"family": "go", "arrivals.per_second": 99, "clients": 80})
    # Then
    groups = changed.resolved()["load"]["groups"]
    assert [group["family"] for group in groups] == ["go", "go"]
    assert [group["clients"] for group in groups] == [60, 20]
    assert groups[0]["arrivals"]["per_second"] == 99
    assert "per_second" not in groups[1]["arrivals"]
    mix = with_values(DOCUMENT, {"groups.scripts.clients": 500})
    assert mix.scenario.clients == 530


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("proxy.k", 1, "the scenario's cluster has no proxy"),
        ("topics.size", 1, "there are namespaces, per_namespace"),
        ("groups.nobody.clients", 1, "one of the groups java, scripts"),
        ("arrivals.rate", 1, "no group of the scenario has it"),
        ("phases.warm.up", 1, "there is nothing below warm"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, value: int, said: str) -> None:
    with pytest.raises(UsageError, match=f"--vary {path}: there is no such key; .*{said}"):
        with_values(DOCUMENT, {path: value})


@pytest.mark.parametrize("clients", [float("inf"), 2.5, True, "010"])
def test_clients_are_a_whole_number(clients: Value) -> None:
    with pytest.raises(UsageError, match=f"--vary clients={clients}: clients are a whole number"):
        with_values(DOCUMENT, {"clients": clients})


def test_a_value_that_does_not_fit_is_refused_with_its_path() -> None:
    with pytest.raises(UsageError, match=r"^--vary family=basic: load\.groups\[0\]"):
        with_values(DOCUMENT, {"family": "basic"})
