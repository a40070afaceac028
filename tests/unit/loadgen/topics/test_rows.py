from collections import Counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.topics import rows
from loadgen.topics.distributions import (
    FEW,
    FEWEST_PARTITIONS,
    LENGTHS,
    MOST_PARTITIONS,
    ONE_TOPIC,
)
from loadgen.topics.plan import TopicPlan, TopicShape, plan_parts
from loadgen.topics.rows import namespace_rows
from proto.names import TopicName
from proto.topic_hash import java_order, topics_hash
from tests.support.examples import many


@st.composite
def shapes(draw: st.DrawFn) -> TopicShape:
    partitions = draw(st.sampled_from([FEW, ONE_TOPIC, "zipf:0", "zipf:1.3", "1", "16", "100000"]))
    return TopicShape(
        mean_name_bytes=draw(st.integers(90, 512)),
        plain_share=0.0 if partitions == ONE_TOPIC else draw(st.floats(0, 1)),
        tenant_skew=draw(st.floats(0, 3)),
        namespace_skew=draw(st.one_of(st.just(0.0), st.floats(0, 3))),
        name_lengths=draw(st.sampled_from(LENGTHS)),
        partitions=partitions,
        properties=draw(st.sampled_from(["usual", "none", "1", "32"])),
        non_persistent_share=draw(st.floats(0, 1)),
    )


@st.composite
def plans(draw: st.DrawFn) -> TopicPlan:
    namespaces = draw(st.integers(1, 12))
    topics = draw(st.integers(namespaces, namespaces * 200))
    return TopicPlan(topics, namespaces, draw(st.integers(0, 2**63 - 1)), draw(shapes()))


def all_rows(plan: TopicPlan, parts: int = 1) -> pa.Table:
    return pa.concat_tables(
        namespace_rows(plan, one) for part in plan_parts(plan, parts) for one in part
    )


@given(plans(), st.integers(1, 50))
@settings(max_examples=10, deadline=None)
def test_the_rows_of_a_namespace_do_not_depend_on_the_piece_size(plan, piece) -> None:
    whole = all_rows(plan)
    with patch.object(rows, "_PIECE_ROWS", piece):
        assert all_rows(plan).equals(whole)


def names_of(plan: TopicPlan) -> list[str]:
    return all_rows(plan).column("topic").to_pylist()


@given(plans(), st.integers(1, 20))
@settings(max_examples=many(60), deadline=None)
def test_every_topic_shape_yields_the_planned_number_of_valid_sorted_names(plan, parts) -> None:
    table = all_rows(plan)
    assert all_rows(plan, parts).equals(table)
    rows = table.to_pylist()
    assert len({row["topic"] for row in rows}) == len(rows) == plan.topics
    keys = [(row["namespace"].encode(), java_order(row["topic"].encode())) for row in rows]
    assert keys == sorted(keys)
    sizes = Counter(row["namespace"] for row in rows)
    assert len(sizes) == plan.namespaces
    assert plan.skewed or max(sizes.values()) - min(sizes.values()) <= 1
    indexes: dict[str, list[int]] = {}
    shared: dict[str, set[tuple[object, ...]]] = {}
    for row in rows:
        name = TopicName.parse(row["topic"])
        assert str(name) == row["topic"]
        assert (name.namespace.tenant, str(name.namespace)) == (row["tenant"], row["namespace"])
        base = str(name.partitioned_name)
        indexes.setdefault(base, []).append(name.partition_index)
        shared.setdefault(base, set()).add((row["partitions"], *row["properties"]))
    for base, ((count, *properties),) in shared.items():
        assert sorted(indexes[base]) == (list(range(count)) if count else [-1])
        if plan.shape.partitions == FEW and count:
            assert FEWEST_PARTITIONS <= count <= MOST_PARTITIONS
        if plan.shape.properties == "usual":
            first, second, *third = (key for key, _ in properties)
            assert (first, second) == ("team", "env")
            assert third in ([], ["tier"], ["owner"])


def test_the_first_eight_digits_of_topic_names_are_unique_in_a_namespace() -> None:
    names = names_of(TopicPlan(20_000, 1, seed=7))
    bases = {str(TopicName.parse(name).partitioned_name) for name in names}
    assert len({base.rpartition("-")[2][:8] for base in bases}) == len(bases)


def test_different_seeds_yield_disjoint_names() -> None:
    assert not set(names_of(TopicPlan(500, 1, 1))) & set(names_of(TopicPlan(500, 1, 2)))


@pytest.mark.parametrize(
    ("plan", "hashed"),
    [
        (TopicPlan(3000, 3, seed=7), "5b8807e7"),
        (
            TopicPlan(
                3000, 7, 7, TopicShape(100, 0.2, 1.2, 0.9, 3, "long-tail", "zipf:1.1", "2", 0.1)
            ),
            "f5ae41a6",
        ),
    ],
)
def test_the_topics_of_a_seed_are_the_same_in_every_version(plan: TopicPlan, hashed: str) -> None:
    assert topics_hash(names_of(plan)) == hashed


@pytest.mark.parametrize(
    ("name_lengths", "spread"), [("fixed", 0), ("even", 12), ("long-tail", 272)]
)
def test_each_distribution_of_name_lengths_keeps_the_mean(name_lengths: str, spread: int) -> None:
    shape = TopicShape(160, plain_share=1, name_lengths=name_lengths)
    lengths = [len(name) for name in names_of(TopicPlan(20_000, 2, 7, shape))]
    assert np.mean(lengths) == pytest.approx(160, rel=0.02)
    assert max(lengths) == pytest.approx(160 + spread, rel=0.01)


@pytest.mark.parametrize("mean_name_bytes", [90, 100, 512])
def test_names_of_partitions_count_in_the_mean_length(mean_name_bytes: int) -> None:
    names = names_of(TopicPlan(40_000, 4, 7, TopicShape(mean_name_bytes)))
    assert np.mean([len(name) for name in names]) == pytest.approx(mean_name_bytes, rel=0.02)


@pytest.mark.parametrize("mean_name_bytes", [33, 60, 89])
def test_short_names_have_exactly_the_requested_length_and_are_unique(mean_name_bytes: int) -> None:
    shape = TopicShape(mean_name_bytes, plain_share=1.0, name_lengths="fixed")
    names = names_of(TopicPlan(3_000, 30, 7, shape))
    assert {len(name) for name in names} == {mean_name_bytes}
    assert len(set(names)) == 3_000


@pytest.mark.parametrize(
    ("partitions", "ratios"),
    [("few", {(3, 8): 8 / 3, (8, 64): 8}), ("zipf:1", {(1, 2): 2, (1, 8): 8})],
)
def test_small_partition_counts_are_the_most_frequent(partitions, ratios) -> None:
    shape = TopicShape(plain_share=0.15, partitions=partitions)
    counts = Counter(all_rows(TopicPlan(200_000, 5, 7, shape)).column("partitions").to_pylist())
    assert counts[0] / 200_000 == pytest.approx(0.15, abs=0.01)
    topics_of = {count: names / count for count, names in counts.items() if count}
    for (one, other), ratio in ratios.items():
        assert topics_of[one] / topics_of[other] == pytest.approx(ratio, rel=0.25)


def test_a_namespace_can_be_a_single_partitioned_topic() -> None:
    rows = all_rows(TopicPlan(5000, 2, 7, TopicShape(plain_share=0, partitions=ONE_TOPIC)))
    assert Counter(rows.column("partitions").to_pylist()) == {2500: 5000}


def test_the_share_of_non_persistent_topics_is_as_requested() -> None:
    names = names_of(TopicPlan(20_000, 2, 7, TopicShape(plain_share=1, non_persistent_share=0.3)))
    share = sum(name.startswith("non-persistent://") for name in names) / 20_000
    assert share == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(("properties", "count"), [("none", 0), ("5", 5)])
def test_topics_have_the_requested_number_of_properties(properties: str, count: int) -> None:
    table = all_rows(TopicPlan(100, 2, 7, TopicShape(properties=properties)))
    rows = table.column("properties").to_pylist()
    assert {len(row) for row in rows} == {count}
    assert {key for row in rows for key, _ in row} == {f"label-0{i}" for i in range(count)}
