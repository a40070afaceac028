"""Grants: the actions allowed to roles in a namespace, read from the namespace's policies.

A document of a namespace's policies has grants below ``auth_policies``: actions by role for the
namespace and for single topics, and the exclusive roles of subscriptions by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.authorization.operations import GRANTED_BY, Action
from broker.policies.table import MODE_KEY, PREFIX
from proto.names import is_blank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.operations import NamespaceOperation, TopicOperation
    from broker.policies.service import PolicyService
    from proto.names import TopicName

    ByRole = Mapping[str, frozenset[Action]]
    Operation = NamespaceOperation | TopicOperation

KEY = "auth_policies"
OF_NAMESPACE, OF_TOPICS = "namespace_auth", "destination_auth"
OF_SUBSCRIPTIONS = "subscription_auth_roles"
_ACTIONS = {action.value: action for action in Action}


@dataclass(frozen=True, slots=True)
class Grants:
    """The actions granted to roles on a namespace, its topics and its subscriptions.

    Attributes:
        of_namespace: Actions on all topics, by role.
        of_topics: Actions on single topics, by full name and role.
        of_subscriptions: The only roles that may use a subscription, by its name.
        prefixed: True if the name of each subscription must begin with the role of its consumers.
    """

    of_namespace: ByRole = field(default_factory=dict)
    of_topics: Mapping[str, ByRole] = field(default_factory=dict)
    of_subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    prefixed: bool = False

    def keeps_from(self, role: str, subscription: str) -> bool:
        """Return True if a role may not use a subscription, because only other roles may use it."""
        only = () if is_blank(subscription) else self.of_subscriptions.get(subscription, ())
        return bool(only) and role not in only

    def keeps_some_from(self, role: str) -> bool:
        """Return True if a role may be excluded from some of the namespace's subscriptions."""
        return self.prefixed or any(
            self.keeps_from(role, subscription) for subscription in self.of_subscriptions
        )

    def lacks_prefix(self, role: str, subscription: str) -> bool:
        """Return True if a subscription's name must begin with the role's name, but does not."""
        return self.prefixed and not is_blank(subscription) and not subscription.startswith(role)


NO_GRANTS = Grants()


def read_grants(document: Mapping[str, Any]) -> Grants:
    """Return the grants stored in a namespace's policies.

    Unknown actions allow nothing.
    """
    kept, prefixed = document.get(KEY) or {}, document.get(MODE_KEY) == PREFIX
    if not kept and not prefixed:
        return NO_GRANTS
    topics = kept.get(OF_TOPICS, {})
    subscriptions = kept.get(OF_SUBSCRIPTIONS, {})
    return Grants(
        _by_role(kept.get(OF_NAMESPACE, {})),
        {topic: _by_role(roles) for topic, roles in topics.items()},
        {name: frozenset(roles) for name, roles in subscriptions.items()},
        prefixed,
    )


async def forget_grants(policies: PolicyService, topic: TopicName) -> None:
    """Remove the grants on a deleted topic and its partitions.

    Otherwise a new topic with the same name would have grants that its creator has not given.

    Raises:
        StoreError: The store failed.
    """

    def left(document: Mapping[str, Any]) -> object:
        kept = document.get(KEY) or {}
        topics: Mapping[str, object] = kept.get(OF_TOPICS) or {}
        others = {name: roles for name, roles in topics.items() if not _is_part(name, topic)}
        changed = {**kept, OF_TOPICS: others}
        return changed if any(changed.values()) else None

    await policies.change(topic.namespace, KEY, left)


def _is_part(name: str, topic: TopicName) -> bool:
    start, end = f"{topic}-partition-", name.removeprefix(f"{topic}-partition-")
    return name == str(topic) or (name.startswith(start) and end.isdecimal())


def _by_role(kept: Mapping[str, Any]) -> ByRole:
    return {
        role: frozenset(_ACTIONS[one] for one in actions or () if one in _ACTIONS)
        for role, actions in kept.items()
    }


_NO_ROLES: Mapping[str, frozenset[Action]] = {}


def namespace_allows(grants: Grants, role: str, operation: Operation, *, wildcards: bool) -> bool:
    """Return True if a namespace's grants allow a role an operation on the namespace.

    Grants on single topics do not count.

    Source: upstream PulsarAuthorizationProvider.
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

    For a partition, its own grants and those of its partitioned topic count; wildcards in the
    latter do not count, as upstream.

    Args:
        grants: The grants of the topic's namespace.
        role: The role of the requester.
        operation: The requested operation.
        topic: The topic.
        subscription: The operation's subscription, if any. A subscription with exclusive roles
            admits only these roles, and only if they have a grant.
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
    """Return True if a role matches the wildcard pattern ``abc*`` or ``*abc``.

    Other patterns match no role.
    """
    return (pattern.endswith("*") and role.startswith(pattern[:-1])) or (
        pattern.startswith("*") and role.endswith(pattern[1:])
    )
