from __future__ import annotations

import itertools
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.corpus.distributions import FEWEST_PARTITIONS, MOST_PARTITIONS
from loadgen.corpus.synthetic import TOPIC_SCHEMA, namespace_rows
from loadgen.corpus.topic_plan import TopicPlan, TopicShape, part_namespaces, plan_namespaces
from proto.names import TopicName
from proto.topic_hash import java_order, topics_hash


@st.composite
def plans(draw: st.DrawFn) -> TopicPlan:
    namespaces = draw(st.integers(1, 12))
    topics = draw(st.integers(namespaces, namespaces * 300))
    shape = TopicShape(
        mean_name_bytes=draw(st.integers(90, 512)),
        plain_share=draw(st.floats(0, 1)),
        tenant_skew=draw(st.floats(0, 3)),
    )
    return TopicPlan(topics, namespaces, draw(st.integers(0, 2**63 - 1)), shape)


def all_rows(plan: TopicPlan, parts: int = 1) -> pa.Table:
    batches = [
        namespace_rows(plan, namespace)
        for part in range(parts)
        for namespace in part_namespaces(plan, part, parts)
    ]
    return pa.Table.from_batches(batches, schema=TOPIC_SCHEMA)


@given(plans())
@settings(max_examples=60, deadline=None)
def test_topics_are_dealt_evenly_to_the_namespaces(plan: TopicPlan) -> None:
    # When
    rows = all_rows(plan)
    # Then
    sizes = Counter(rows.column("namespace").to_pylist())
    assert rows.num_rows == plan.topics
    assert len(sizes) == plan.namespaces
    assert max(sizes.values()) - min(sizes.values()) <= 1


@given(plans())
@settings(max_examples=60, deadline=None)
def test_names_are_unique_valid_and_in_their_namespace(plan: TopicPlan) -> None:
    # When
    rows = all_rows(plan).select(["tenant", "namespace", "topic"]).to_pylist()
    # Then
    assert len({row["topic"] for row in rows}) == plan.topics
    for row in rows:
        name = TopicName.parse(row["topic"])
        assert str(name) == row["topic"]
        assert (name.namespace.tenant, str(name.namespace)) == (row["tenant"], row["namespace"])


@given(plans())
@settings(max_examples=60, deadline=None)
def test_partitioned_topics_list_all_their_partitions(plan: TopicPlan) -> None:
    # When
    rows = all_rows(plan).select(["topic", "partitions"]).to_pylist()
    # Then
    listed: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        name = TopicName.parse(row["topic"])
        key = (str(name.partitioned_name), row["partitions"])
        listed.setdefault(key, []).append(name.partition_index)
    for (_, partitions), indexes in listed.items():
        if partitions:
            assert FEWEST_PARTITIONS <= partitions <= MOST_PARTITIONS
            assert sorted(indexes) == list(range(partitions))
        else:
            assert indexes == [-1]


@given(plans(), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_rows_do_not_depend_on_the_number_of_parts(plan: TopicPlan, parts: int) -> None:
    assert all_rows(plan, parts).equals(all_rows(plan))


@given(plans())
@settings(max_examples=40, deadline=None)
def test_rows_come_in_the_order_of_namespace_and_name(plan: TopicPlan) -> None:
    # When
    rows = all_rows(plan).select(["namespace", "topic"]).to_pylist()
    # Then
    keys = [(row["namespace"].encode(), java_order(row["topic"].encode())) for row in rows]
    assert keys == sorted(keys)


@given(plans())
@settings(max_examples=40, deadline=None)
def test_all_partitions_of_a_topic_share_two_or_three_properties(plan: TopicPlan) -> None:
    # When
    rows = all_rows(plan).select(["topic", "properties"]).to_pylist()
    # Then
    by_topic: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for row in rows:
        base = str(TopicName.parse(row["topic"]).partitioned_name)
        by_topic.setdefault(base, set()).add(tuple(row["properties"]))
    for (properties,) in by_topic.values():
        keys = [key for key, _ in properties]
        assert keys[:2] == ["team", "env"]
        assert keys[2:] in ([], ["tier"], ["owner"])


def test_the_first_eight_digits_alone_tell_the_topics_of_a_namespace_apart() -> None:
    # Given
    (namespace,) = plan_namespaces(TopicPlan(20_000, 1, seed=7))
    # When
    names = namespace_rows(TopicPlan(20_000, 1, seed=7), namespace).column("topic").to_pylist()
    # Then
    bases = {str(TopicName.parse(name).partitioned_name) for name in names}
    assert len({base.rpartition("-")[2][:8] for base in bases}) == len(bases)


def test_another_seed_makes_other_names() -> None:
    # Given
    one, other = TopicPlan(500, 1, seed=1), TopicPlan(500, 1, seed=2)
    # When
    common = set(all_rows(one).column("topic").to_pylist()) & set(
        all_rows(other).column("topic").to_pylist()
    )
    # Then
    assert not common


def test_the_same_seed_makes_the_same_topics_in_every_version() -> None:
    # When
    names = all_rows(TopicPlan(3000, 3, seed=7)).column("topic").to_pylist()
    # Then
    assert topics_hash(names) == "5b8807e7"


@pytest.mark.parametrize("mean_name_bytes", [90, 100, 160, 512])
def test_the_mean_length_of_names_is_the_one_asked_for(mean_name_bytes: int) -> None:
    # Given
    plan = TopicPlan(40_000, 4, 7, TopicShape(mean_name_bytes=mean_name_bytes))
    # When
    lengths = pc.binary_length(all_rows(plan).column("topic"))
    # Then
    assert pc.mean(lengths).as_py() == pytest.approx(mean_name_bytes, rel=0.02)
    assert pc.max(lengths).as_py() > pc.min(lengths).as_py()


def test_the_plain_share_and_the_partition_counts_are_believable() -> None:
    # Given
    rows = all_rows(TopicPlan(100_000, 10, seed=7))
    # When
    counts = Counter(rows.column("partitions").to_pylist())
    # Then
    assert counts[0] / 100_000 == pytest.approx(0.15, abs=0.01)
    topics_of = {count: names / count for count, names in counts.items() if count}
    assert topics_of[3] > topics_of[8] > topics_of[64] > 0


def test_tenants_hold_namespaces_by_zipfs_law() -> None:
    # When
    held = Counter(namespace.tenant for namespace in plan_namespaces(TopicPlan(1000, 100, 7)))
    # Then
    shares = [count for _, count in held.most_common()]
    assert len(shares) == 10
    assert shares[0] == pytest.approx(34, abs=3)
    assert shares[0] / shares[1] == pytest.approx(2, abs=0.3)
    assert shares[-1] >= 1


def test_ids_of_the_namespaces_follow_each_other() -> None:
    # When
    planned = plan_namespaces(TopicPlan(1003, 10, 7))
    # Then
    for left, right in itertools.pairwise(planned):
        assert left.first_id + left.topics == right.first_id


@pytest.mark.parametrize(
    ("topics", "namespaces", "seed", "said"),
    [
        (5, 10, 7, "5 topics cannot fill 10 namespaces"),
        (5, 0, 7, "0 namespaces"),
        (10**9, 1, 7, "ask for more namespaces"),
        (5, 1, -1, "seed is -1"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(
    topics: int, namespaces: int, seed: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        TopicPlan(topics, namespaces, seed)


@pytest.mark.parametrize(
    "shape",
    [
        {"mean_name_bytes": 31},
        {"mean_name_bytes": 513},
        {"plain_share": 1.1},
        {"tenant_skew": -1.0},
    ],
)
def test_a_shape_that_cannot_be_made_is_refused(shape: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be from"):
        TopicShape(**shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("mean_name_bytes", [33, 60, 89])
def test_names_that_have_no_room_for_words_are_as_long_as_asked_for(mean_name_bytes: int) -> None:
    # Given
    shape = TopicShape(mean_name_bytes, plain_share=1.0, name_lengths="fixed")
    plan = TopicPlan(3_000, 30, 7, shape)
    # When
    names = [
        name
        for each in plan_namespaces(plan)
        for name in namespace_rows(plan, each).column("topic").to_pylist()
    ]
    # Then
    assert {len(name) for name in names} == {mean_name_bytes}
    assert len(set(names)) == 3_000


def test_names_with_words_or_partitions_need_room_for_them() -> None:
    with pytest.raises(ValueError, match="below 90 the plain share must be 1"):
        TopicShape(89)


def test_namespaces_have_the_sizes_that_are_given_in_their_order() -> None:
    # Given
    plan = TopicPlan(60, 4, 7, sizes=(30, 5, 5, 20))
    # When
    planned = plan_namespaces(plan)
    # Then
    assert [each.topics for each in planned] == [30, 5, 5, 20]
    assert [namespace_rows(plan, each).num_rows for each in planned] == [30, 5, 5, 20]
    assert [each for part in range(3) for each in part_namespaces(plan, part, 3)] == list(planned)
