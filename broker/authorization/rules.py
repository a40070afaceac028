"""Says if grants allow a role an operation: yes or no, from nothing but what is given.

Source: upstream PulsarAuthorizationProvider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.authorization.operations import GRANTED_BY, Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.grants import ByRole, Grants
    from broker.authorization.operations import NamespaceOperation, TopicOperation
    from proto.names import TopicName

_NO_ROLES: Mapping[str, frozenset[Action]] = {}


def namespace_allows(
    grants: Grants, role: str, operation: NamespaceOperation, *, wildcards: bool
) -> bool:
    """Tell whether the grants of a namespace allow a role an operation on it.

    Grants on single topics count for nothing here.
    """
    needed = GRANTED_BY[operation]
    return _named(grants.of_namespace, role, needed) or (
        wildcards and _matched(grants.of_namespace, role, needed)
    )


def topic_allows(
    grants: Grants,
    role: str,
    operation: TopicOperation,
    topic: TopicName,
    subscription: str = "",
    *,
    wildcards: bool,
) -> bool:
    """Tell whether the grants of a topic's namespace allow a role an operation on the topic.

    A partition has the grants of its partitioned topic besides its own; wildcards among the
    former are not looked at, as upstream does not.

    Args:
        grants: Of the namespace.
        role: Who asks.
        operation: What is asked for.
        topic: What for.
        subscription: Where the operation is about one: those with roles of their own are for these
            roles alone, which need the grant all the same.
        wildcards: Whether grants to ``abc*`` and ``*abc`` are for all roles that begin or end so.
    """
    needed = GRANTED_BY[operation]
    produce = needed & {Action.PRODUCE}
    if produce and _any_grant(grants, role, produce, topic, wildcards=wildcards):
        return True
    consume = needed - produce
    kept = grants.keeps_from(role, subscription) or grants.lacks_prefix(role, subscription)
    if not consume or kept:
        return False
    return _any_grant(grants, role, consume, topic, wildcards=wildcards)


def _any_grant(
    grants: Grants, role: str, needed: frozenset[Action], topic: TopicName, *, wildcards: bool
) -> bool:
    of_topic = grants.of_topics.get(str(topic), _NO_ROLES)
    places = (grants.of_namespace, of_topic)
    if any(_named(place, role, needed) for place in places):
        return True
    if wildcards and any(_matched(place, role, needed) for place in places):
        return True
    whole = topic.partitioned_name
    return whole != topic and _named(grants.of_topics.get(str(whole), _NO_ROLES), role, needed)


def _named(granted: ByRole, role: str, needed: frozenset[Action]) -> bool:
    return not needed.isdisjoint(granted.get(role, ()))


def _matched(granted: ByRole, role: str, needed: frozenset[Action]) -> bool:
    return any(
        not needed.isdisjoint(actions) and matches(pattern, role)
        for pattern, actions in granted.items()
    )


def matches(pattern: str, role: str) -> bool:
    """Tell whether a role is one of ``abc*``, or of ``*abc``; every other pattern has none."""
    return (pattern.endswith("*") and role.startswith(pattern[:-1])) or (
        pattern.startswith("*") and role.endswith(pattern[1:])
    )
