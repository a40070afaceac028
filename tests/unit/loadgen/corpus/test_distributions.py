"""The named distributions of a corpus."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.corpus.distributions import FEW, LENGTHS, ONE_TOPIC, dealt, zipf_weights
from loadgen.corpus.part_file import namespace_entry
from loadgen.corpus.synthetic import TOPIC_SCHEMA, namespace_rows
from loadgen.corpus.topic_plan import TopicPlan, TopicShape, plan_namespaces, plan_parts
from proto.names import TopicName
from proto.topic_hash import topics_hash


@st.composite
def shapes(draw: st.DrawFn) -> TopicShape:
    partitions = draw(st.sampled_from([FEW, ONE_TOPIC, "zipf:0", "zipf:1.3", "1", "16", "100000"]))
    return TopicShape(
        mean_name_bytes=draw(st.integers(90, 512)),
        plain_share=0.0 if partitions == ONE_TOPIC else draw(st.floats(0, 1)),
        namespace_skew=draw(st.floats(0, 3)),
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


def rows_of(plan: TopicPlan, parts: int = 1) -> pa.Table:
    """The rows of a plan, made part by part."""
    planned = plan_namespaces(plan)
    ranges = plan_parts(plan, parts)
    batches = [namespace_rows(plan, one) for span in ranges for one in planned[slice(*span)]]
    return pa.Table.from_batches(batches, schema=TOPIC_SCHEMA)


@given(plans(), st.integers(1, 20))
@settings(max_examples=40)
def test_every_shape_makes_as_many_valid_names_as_asked_whatever_the_parts(
    plan: TopicPlan, parts: int
) -> None:
    # When
    rows = rows_of(plan)
    # Then
    names = rows.column("topic").to_pylist()
    assert len(set(names)) == len(names) == plan.topics
    assert rows_of(plan, parts).equals(rows)
    partitions: dict[str, set[tuple[int, int]]] = {}
    for name, count in zip(names, rows.column("partitions").to_pylist(), strict=True):
        topic = TopicName.parse(name)
        assert str(topic) == name
        key = str(topic.partitioned_name)
        partitions.setdefault(key, set()).add((count, topic.partition_index))
    for indexes in partitions.values():
        ((count),) = {count for count, _ in indexes}
        assert sorted(index for _, index in indexes) == (list(range(count)) if count else [-1])


@given(plans())
@settings(max_examples=20)
def test_a_manifest_entry_tells_persistent_topics_apart(plan: TopicPlan) -> None:
    for namespace in plan_namespaces(plan):
        # Given
        names = namespace_rows(plan, namespace).column("topic")
        persistent = [name for name in names.to_pylist() if name.startswith("persistent://")]
        # When
        entry = namespace_entry(names)
        # Then
        assert (entry.topics, entry.hash) == (len(names), topics_hash(names.to_pylist()))
        assert entry.name_bytes == sum(map(len, names.to_pylist()))
        assert (entry.asked.topics, entry.asked.hash) == (len(persistent), topics_hash(persistent))
        assert (entry.persistent is None) == (len(persistent) == len(names))


def test_the_hash_of_other_letters_than_ascii_is_javas() -> None:
    names = ["persistent://a/b/\U0001f600", "persistent://a/b/\ufffd"]
    assert namespace_entry(pa.array(sorted(names))).hash == topics_hash(names)


def test_namespaces_hold_topics_by_zipfs_law() -> None:
    # Given
    plan = TopicPlan(1_000_000, 100, 7, TopicShape(namespace_skew=1.0))
    # When
    sizes = sorted((one.topics for one in plan_namespaces(plan)), reverse=True)
    # Then
    assert sum(sizes) == 1_000_000
    assert sizes[0] / sizes[1] == pytest.approx(2, rel=0.01)
    assert sizes[0] / sizes[9] == pytest.approx(10, rel=0.01)
    # And it is not the first name that is the largest
    assert plan_namespaces(plan)[0].topics != sizes[0]


def test_files_of_a_skewed_plan_hold_about_as_much() -> None:
    # Given
    plan = TopicPlan(1_000_000, 1000, 7, TopicShape(namespace_skew=0.5))
    # When
    held = [
        sum(one.topics for one in plan_namespaces(plan)[slice(*span)])
        for span in plan_parts(plan, 10)
    ]
    # Then
    assert len(held) == 10
    assert max(held) < 1.3 * min(held)


def test_dealing_gives_everyone_something() -> None:
    assert dealt(10, zipf_weights(10, 3)) == [1] * 10
    assert sum(dealt(1234, zipf_weights(17, 1.2))) == 1234


def test_a_namespace_can_be_one_partitioned_topic() -> None:
    # Given
    shape = TopicShape(plain_share=0, partitions=ONE_TOPIC)
    # When
    rows = rows_of(TopicPlan(5000, 2, 7, shape))
    # Then
    assert Counter(rows.column("partitions").to_pylist()) == {2500: 5000}


def test_small_partition_counts_are_the_most_in_a_zipf_law() -> None:
    # Given
    shape = TopicShape(plain_share=0, partitions="zipf:1")
    # When
    counts = Counter(rows_of(TopicPlan(100_000, 5, 7, shape)).column("partitions").to_pylist())
    # Then
    topics_of = {partitions: names / partitions for partitions, names in counts.items()}
    assert topics_of[1] / topics_of[2] == pytest.approx(2, rel=0.1)
    assert topics_of[1] / topics_of[8] == pytest.approx(8, rel=0.2)


@pytest.mark.parametrize("name_lengths", LENGTHS)
def test_each_law_of_lengths_keeps_the_mean(name_lengths: str) -> None:
    # Given
    shape = TopicShape(mean_name_bytes=160, plain_share=1, name_lengths=name_lengths)
    # When
    lengths = pc.binary_length(rows_of(TopicPlan(20_000, 2, 7, shape)).column("topic")).to_numpy()
    # Then
    assert lengths.mean() == pytest.approx(160, rel=0.02)
    spread = {"fixed": 0, "even": 12, "long-tail": 272}[name_lengths]
    assert np.max(lengths) == pytest.approx(160 + spread, rel=0.01)


def test_non_persistent_topics_are_as_many_as_asked() -> None:
    # Given
    shape = TopicShape(plain_share=1, non_persistent_share=0.3)
    # When
    names = rows_of(TopicPlan(20_000, 2, 7, shape)).column("topic")
    # Then
    share = pc.mean(pc.starts_with(names, "non-persistent://").cast(pa.float64())).as_py()
    assert share == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(("properties", "count"), [("none", 0), ("5", 5)])
def test_topics_have_the_properties_asked_for(properties: str, count: int) -> None:
    # When
    shape = TopicShape(properties=properties)
    rows = rows_of(TopicPlan(100, 2, 7, shape)).column("properties").to_pylist()
    # Then
    assert {len(row) for row in rows} == {count}
    assert {key for row in rows for key, _ in row} == {f"label-0{i}" for i in range(count)}


def test_a_skewed_corpus_is_the_same_in_every_version() -> None:
    # Given
    shape = TopicShape(100, 0.2, 1.2, 0.9, 3, "long-tail", "zipf:1.1", "2", 0.1)
    # When
    names = rows_of(TopicPlan(3000, 7, 7, shape)).column("topic").to_pylist()
    # Then
    assert topics_hash(names) == "f5ae41a6"


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"namespace_skew": 3.1}, "The namespace skew is 3.1; it must be from 0 to 3"),
        ({"non_persistent_share": -0.1}, "non persistent share"),
        ({"name_lengths": "gamma"}, "'gamma'; they must be one of even, fixed, long-tail"),
        ({"partitions": "zipf:9"}, "'zipf:9'; they must be few"),
        ({"partitions": "0"}, "'0'; they must be few"),
        ({"partitions": "one-topic"}, "the plain share must be 0"),
        ({"properties": "33"}, "usual, none or a number from 1 to 32"),
    ],
)
def test_a_distribution_that_is_none_is_refused(shape: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TopicShape(**shape)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topics", "shape", "said"),
    [
        (3_000_000, TopicShape(namespace_skew=3), "2000000 in the largest.*or less skew"),
        (200_001, TopicShape(plain_share=0, partitions=ONE_TOPIC), "100000 in the largest"),
        (1000, TopicShape(tenants=3), "3 tenants were asked for"),
    ],
)
def test_a_plan_that_a_shape_forbids_is_refused(topics: int, shape: TopicShape, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TopicPlan(topics, 2, 7, shape)
