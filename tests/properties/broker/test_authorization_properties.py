"""Grants only ever add, and each allows the actions of a naive table."""

from hypothesis import given
from hypothesis import strategies as st

from broker.authorization.grants import Grants, matches, namespace_allows, topic_allows
from broker.authorization.operations import (
    GRANTED_BY,
    Action,
    NamespaceOperation,
    TopicOperation,
)
from proto.names import TopicName

TOPICS = [TopicName.parse(f"persistent://a/b/{name}") for name in ("x", "y", "x-partition-0", "z")]
ROLES = st.sampled_from(["r", "role", "other", "r*", "*r", "*"])
BY_ROLE = st.dictionaries(ROLES, st.frozensets(st.sampled_from(Action)), max_size=4)
GRANTS = st.builds(
    Grants,
    BY_ROLE,
    st.dictionaries(st.sampled_from([str(topic) for topic in TOPICS]), BY_ROLE, max_size=3),
    st.dictionaries(st.sampled_from(["s", "t"]), st.frozensets(ROLES, max_size=2), max_size=2),
)
SUBSCRIPTIONS = st.sampled_from(["", "s", "t"])


def naive(
    grants: Grants, role: str, action: Action, topic: TopicName, subscription: str, *, stars: bool
) -> bool:
    """Return upstream's rule for one action, line by line."""
    only = grants.of_subscriptions.get(subscription, frozenset()) if subscription else frozenset()
    if action is Action.CONSUME and only and role not in only:
        return False
    exact = [grants.of_namespace, grants.of_topics.get(str(topic), {})]
    whole = grants.of_topics.get(str(topic.partitioned_name), {})
    if any(action in place.get(role, ()) for place in [*exact, whole]):
        return True
    return stars and any(
        action in actions and matches(pattern, role)
        for place in exact
        for pattern, actions in place.items()
    )


@given(GRANTS, ROLES, st.sampled_from(TopicOperation), st.sampled_from(TOPICS), SUBSCRIPTIONS)
def test_a_topic_operation_is_allowed_if_any_of_its_actions_is_granted(
    grants: Grants, role: str, operation: TopicOperation, topic: TopicName, subscription: str
) -> None:
    for stars in (False, True):
        found = topic_allows(grants, role, operation, topic, subscription, wildcards=stars)
        assert found == any(
            naive(grants, role, action, topic, subscription, stars=stars)
            for action in GRANTED_BY[operation]
        )


@given(GRANTS, ROLES, st.sampled_from(NamespaceOperation), st.sampled_from(TOPICS))
def test_a_namespace_operation_depends_only_on_grants_of_the_namespace(
    grants, role, operation, topic
) -> None:
    without = Grants(grants.of_namespace)
    for stars in (False, True):
        found = namespace_allows(grants, role, operation, wildcards=stars)
        assert found == namespace_allows(without, role, operation, wildcards=stars)
        assert found == any(
            naive(without, role, action, topic, "", stars=stars) for action in GRANTED_BY[operation]
        )


@given(GRANTS, BY_ROLE, ROLES, st.sampled_from(TopicOperation), st.sampled_from(TOPICS))
def test_additional_grants_never_remove_a_permission(grants, more, role, operation, topic) -> None:
    both = {
        name: grants.of_namespace.get(name, frozenset()) | more.get(name, frozenset())
        for name in {*grants.of_namespace, *more}
    }
    larger = Grants(both, grants.of_topics, grants.of_subscriptions)
    for stars in (False, True):
        if topic_allows(grants, role, operation, topic, wildcards=stars):
            assert topic_allows(larger, role, operation, topic, wildcards=stars)
