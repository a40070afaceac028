"""Single grants allow as much as a real broker was recorded to allow."""

import pytest

from broker.authorization.grants import (
    NO_GRANTS,
    Grants,
    matches,
    namespace_allows,
    read_grants,
    topic_allows,
)
from broker.authorization.operations import Action, NamespaceOperation, TopicOperation
from proto.names import TopicName

ORDERS = TopicName.parse("persistent://acme/shop/orders")
PARTITION = TopicName.parse("persistent://acme/shop/orders-partition-1")
CONSUME, PRODUCE = frozenset({Action.CONSUME}), frozenset({Action.PRODUCE})


def on_topic(action: frozenset[Action], role: str = "role", topic: TopicName = ORDERS) -> Grants:
    return Grants(of_topics={str(topic): {role: action}})


def test_a_role_without_grants_may_do_nothing() -> None:
    for operation in NamespaceOperation:
        assert not namespace_allows(NO_GRANTS, "role", operation, wildcards=True)
    for operation in TopicOperation:
        assert not topic_allows(NO_GRANTS, "role", operation, ORDERS, wildcards=True)


def test_a_produce_or_consume_grant_on_a_namespace_allows_listing_its_topics() -> None:
    for action, allowed in ((PRODUCE, True), (CONSUME, True), (frozenset({Action.SINKS}), False)):
        grants = Grants(of_namespace={"role": action})
        found = namespace_allows(grants, "role", NamespaceOperation.GET_TOPICS, wildcards=False)
        assert found is allowed


def test_a_grant_on_a_topic_does_not_allow_listing_topics() -> None:
    grants = on_topic(CONSUME)
    assert not namespace_allows(grants, "role", NamespaceOperation.GET_TOPICS, wildcards=False)


def test_a_partition_has_the_grants_of_its_topic() -> None:
    grants = on_topic(PRODUCE)
    assert topic_allows(grants, "role", TopicOperation.PRODUCE, PARTITION, wildcards=False)
    assert not topic_allows(grants, "role", TopicOperation.CONSUME, PARTITION, wildcards=False)


def test_a_topic_does_not_have_the_grants_of_its_partition() -> None:
    grants = on_topic(PRODUCE, topic=PARTITION)
    assert not topic_allows(grants, "role", TopicOperation.PRODUCE, ORDERS, wildcards=False)


def test_a_wildcard_grant_on_a_partitioned_topic_does_not_apply_to_its_partition() -> None:
    grants = on_topic(PRODUCE, role="ro*")
    assert topic_allows(grants, "role", TopicOperation.PRODUCE, ORDERS, wildcards=True)
    assert not topic_allows(grants, "role", TopicOperation.PRODUCE, PARTITION, wildcards=True)


def test_a_subscription_with_roles_is_open_only_to_these_roles_with_a_grant() -> None:
    grants = Grants(
        of_namespace={"role": CONSUME, "other": CONSUME, "third": PRODUCE},
        of_subscriptions={"owned": frozenset({"role", "third"})},
    )

    def may(role: str, subscription: str) -> bool:
        operation = TopicOperation.SUBSCRIBE
        return topic_allows(grants, role, operation, ORDERS, subscription, wildcards=False)

    assert may("role", "owned")
    assert may("other", "free")
    assert not may("other", "owned")
    assert not may("third", "owned"), "it needs the grant all the same"


def test_a_subscription_with_an_empty_set_of_roles_is_open_to_every_granted_role() -> None:
    grants = Grants(of_namespace={"role": CONSUME}, of_subscriptions={"owned": frozenset()})
    operation = TopicOperation.SUBSCRIBE
    assert topic_allows(grants, "role", operation, ORDERS, "owned", wildcards=False)


@pytest.mark.parametrize(
    ("pattern", "role", "found"),
    [
        ("abc*", "abcd", True),
        ("abc*", "abc", True),
        ("*abc", "dabc", True),
        ("*", "anybody", True),
        ("a*c", "abc", False),
        ("abc", "abc", False),
        ("*abc*", "xabcx", False),
        ("*abc*", "*abcx", True),
        ("", "", False),
    ],
)
def test_a_star_matches_any_text_at_one_end_of_a_role(
    pattern: str, role: str, *, found: bool
) -> None:
    assert matches(pattern, role) is found


def test_grants_are_read_from_the_stored_policies() -> None:
    kept = {
        "auth_policies": {
            "namespace_auth": {"a": ["produce", None], "b": None},
            "destination_auth": {str(ORDERS): {"c": ["consume", "unheard of"]}},
            "subscription_auth_roles": {"owned": ["d"]},
        }
    }
    assert read_grants(kept) == Grants(
        {"a": PRODUCE, "b": frozenset()},
        {str(ORDERS): {"c": CONSUME}},
        {"owned": frozenset({"d"})},
    )
    assert read_grants({}) is NO_GRANTS
