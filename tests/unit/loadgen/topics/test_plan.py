from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from loadgen.documents.model import FurtherTopics, Topics
from loadgen.plan.clients import Namespace
from loadgen.topics.distributions import FIXED, ONE_TOPIC
from loadgen.topics.plan import (
    TopicPlan,
    TopicShape,
    plan_namespaces,
    plan_parts,
)


def test_tenants_hold_namespaces_by_zipfs_law() -> None:
    held = Counter(namespace.tenant for namespace in plan_namespaces(TopicPlan(1000, 100, 7)))
    shares = [count for _, count in held.most_common()]
    assert len(shares) == 10
    assert shares[0] == pytest.approx(34, abs=3)
    assert shares[0] / shares[1] == pytest.approx(2, abs=0.3)
    assert shares[-1] >= 1


def test_namespaces_hold_topics_by_zipfs_law_and_the_first_name_is_not_the_largest() -> None:
    planned = plan_namespaces(TopicPlan(1_000_000, 100, 7, TopicShape(namespace_skew=1.0)))
    sizes = sorted((one.topics for one in planned), reverse=True)
    assert sum(sizes) == 1_000_000
    assert sizes[0] / sizes[1] == pytest.approx(2, rel=0.01)
    assert sizes[0] / sizes[9] == pytest.approx(10, rel=0.01)
    assert planned[0].topics != sizes[0]


def test_topic_ids_of_the_namespaces_are_consecutive() -> None:
    for left, right in pairwise(plan_namespaces(TopicPlan(1003, 10, 7))):
        assert left.first_id + left.topics == right.first_id


def test_files_of_a_skewed_plan_hold_similar_numbers_of_topics() -> None:
    plan = TopicPlan(1_000_000, 1000, 7, TopicShape(namespace_skew=0.5))
    held = [sum(one.topics for one in part) for part in plan_parts(plan, 10)]
    assert len(held) == 10
    assert max(held) < 1.3 * min(held)


def test_namespaces_have_the_configured_sizes_in_order() -> None:
    plan = TopicPlan(60, 4, 7, sizes=(30, 5, 5, 20))
    planned = plan_namespaces(plan)
    assert [each.topics for each in planned] == [30, 5, 5, 20]
    assert [each for part in plan_parts(plan, 3) for each in part] == list(planned)


def test_a_different_name_is_required_for_each_namespace() -> None:
    for names in (("a/b",), ("a/b", "a/b")):
        with pytest.raises(ValueError, match="names has 1 different names for 2 namespaces"):
            Topics(namespaces=2, names=names)


@pytest.mark.parametrize(
    ("arguments", "shape", "said"),
    [
        ((5, 10, 7), {}, "5 topics cannot fill 10 namespaces"),
        ((5, 0, 7), {}, "0 namespaces"),
        ((10**9, 1, 7), {}, "ask for more namespaces"),
        ((5, 1, -1), {}, "seed is -1"),
        ((13_000_000, 2, 7), {"namespace_skew": 3}, "10000000 in the largest.*or less skew"),
        ((5_000_000, 1, 7), {"mean_name_bytes": 512}, "more than 4098251 in the largest"),
        (
            (200_001, 2, 7),
            {"plain_share": 0, "partitions": ONE_TOPIC},
            "100000 in the largest",
        ),
        ((1000, 2, 7), {"tenants": 3}, "3 tenants were asked for"),
    ],
)
def test_an_impossible_topic_plan_is_refused(arguments, shape, said) -> None:
    with pytest.raises(ValueError, match=said):
        TopicPlan(*arguments, TopicShape(**shape))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"mean_name_bytes": 31}, "must be from"),
        ({"mean_name_bytes": 513}, "must be from"),
        ({"plain_share": 1.1}, "must be from"),
        ({"tenant_skew": -1.0}, "must be from"),
        ({"namespace_skew": 3.1}, "The namespace skew is 3.1; it must be from 0 to 3"),
        ({"non_persistent_share": -0.1}, "non persistent share"),
        ({"name_lengths": "gamma"}, "'gamma'; they must be one of even, fixed, long-tail"),
        ({"partitions": "zipf:9"}, "'zipf:9'; they must be few"),
        ({"partitions": "0"}, "'0'; they must be few"),
        ({"partitions": "one-topic"}, "the plain share must be 0"),
        ({"properties": "33"}, "usual, none or a number from 1 to 32"),
        ({"properties": "123x"}, "usual, none or a number from 1 to 32"),
        ({"mean_name_bytes": 89}, "below 90 the plain share must be 1"),
    ],
)
def test_an_invalid_topic_shape_is_refused(shape: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TopicShape(**shape)


def test_the_topics_of_a_document_are_converted_into_a_plan() -> None:
    assert Topics(namespaces=3, per_namespace=20, seed=5).plan() == TopicPlan(60, 3, 5)
    short = TopicShape(40, plain_share=1.0, name_lengths=FIXED)
    assert Topics(per_namespace=2, mean_name_bytes=40).plan().shape == short
    further = Topics(
        namespaces=1, per_namespace=2, further=(FurtherTopics(namespaces=2, per_namespace=7),)
    )
    assert [(each.name.count("/"), each.topics) for each in further.expected()] == [
        (1, 2), (1, 7), (1, 7)]  # fmt: skip
    assert Topics(of=("a/b",)).expected() == (Namespace(name="a/b"),)
