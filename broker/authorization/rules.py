"""Decisions whether grants allow a role an operation, as pure functions.

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

    Operation = NamespaceOperation | TopicOperation

_NO_ROLES: Mapping[str, frozenset[Action]] = {}


def namespace_allows(grants: Grants, role: str, operation: Operation, *, wildcards: bool) -> bool:
    """Return True if a namespace's grants allow a role an operation on the namespace.

    Grants on single topics do not count.
    """
    needed = GRANTED_BY[operation]
    return _named(grants.of_namespace, role, needed) or (
        wildcards and _matched(grants.of_namespace, role, needed)
    )


def topic_allows(
    grants: Grants,
    role: str,
    operation: Operation,
    topic: TopicName,
    subscription: str = "",
    *,
    wildcards: bool,
) -> bool:
    """Return True if a namespace's grants allow a role an operation on a topic.

    A partition has its own grants and its partitioned topic's grants, without the wildcards of the
    latter, like upstream.

    Args:
        grants: Of the namespace.
        role: The requester.
        operation: The requested operation.
        topic: The topic.
        subscription: The operation's subscription, if any. A subscription with roles of its own
            admits these roles alone, and only with a grant.
        wildcards: Whether grants to ``abc*`` and ``*abc`` match all roles with this prefix or
            suffix.
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
    """Return True if a role matches ``abc*`` or ``*abc``; other patterns match no role."""
    return (pattern.endswith("*") and role.startswith(pattern[:-1])) or (
        pattern.startswith("*") and role.endswith(pattern[1:])
    )
