"""Namespaces are tried with their true sizes; of many sizes number, total and largest are true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.advice.goal import Goal
from loadgen.advice.limits import Limits, Setting
from loadgen.advice.scenario import document_of, topics_of
from loadgen.advice.workload import MOST_SIZES, NamespaceShape, Workload, size_classes
from loadgen.documents.reading import parse_document


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=200))
def test_number_total_and_largest_are_kept_by_few_sizes(sizes: list[int]) -> None:
    # When
    classes = size_classes(sizes)
    # Then
    found = [size for count, size in classes for _ in range(count)]
    assert found == sorted(found, reverse=True)
    assert (len(found), sum(found)) == (len(sizes), sum(sizes))
    assert found.count(max(sizes)) >= sizes.count(max(sizes))
    assert max(found) == max(sizes)
    assert len(classes) <= 1 + 2 * MOST_SIZES
    if len(set(sizes)) <= MOST_SIZES:
        assert found == sorted(sizes, reverse=True)


def shape(name: str, topics: int, length: int) -> NamespaceShape:
    return NamespaceShape(name, topics, topics * length)


def test_a_storm_has_the_true_sizes_and_the_true_length_of_names() -> None:
    # Given
    shapes = (shape("acme/b", 40, 50), shape("acme/a", 120, 50), shape("acme/c", 40, 50))
    workload = Workload(shapes, {"once": 3})
    # When
    document = parse_document(document_of(workload, Goal(), Setting(Limits()), "pulsar"))
    # Then
    assert [each.topics for each in document.scenario.namespaces] == [120, 40, 40]
    assert document.cluster.topics.mean_name_bytes == 50


def test_a_list_counts_as_much_where_its_names_are_longer_than_the_mean() -> None:
    # Given
    long, short = shape("acme/long", 1_000, 200), shape("acme/short", 1_000, 100)
    # When
    topics = topics_of(Workload((short, long), {"once": 2}))
    # Then
    charged = [size * (topics.mean_name_bytes + 32) for size in topics.sizes]
    for found, wanted in zip(charged, (long, short), strict=True):
        assert abs(found / wanted.charged_bytes - 1) < 0.01


def test_fewer_clients_than_namespaces_ask_for_the_largest() -> None:
    # Given
    shapes = tuple(shape(f"acme/ns{size}", size, 60) for size in range(1, 101))
    # Then
    assert topics_of(Workload(shapes, {"once": 2, "cpp": 3})).sizes == (100, 99, 98)
