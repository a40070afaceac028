"""The grants of a namespace, from its policies.

A document of a namespace's policies has grants below ``auth_policies``: actions by role for the
namespace and for single topics, and the exclusive roles of subscriptions by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.authorization.operations import Action
from broker.policies.table import MODE_KEY, PREFIX
from proto.names import is_blank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.policies.service import PolicyService
    from proto.names import TopicName

    ByRole = Mapping[str, frozenset[Action]]

KEY = "auth_policies"
OF_NAMESPACE, OF_TOPICS = "namespace_auth", "destination_auth"
OF_SUBSCRIPTIONS = "subscription_auth_roles"
_ACTIONS = {action.value: action for action in Action}


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants of a namespace.

    Attributes:
        of_namespace: Actions on all topics, by role.
        of_topics: Actions on single topics, by full name and role.
        of_subscriptions: The exclusive roles of subscriptions, by name of the subscription.
        prefixed: The name of a subscription must begin with the role of its consumers.
    """

    of_namespace: ByRole = field(default_factory=dict)
    of_topics: Mapping[str, ByRole] = field(default_factory=dict)
    of_subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    prefixed: bool = False

    def keeps_from(self, role: str, subscription: str) -> bool:
        """Return True if a subscription has exclusive roles, without this role."""
        only = () if is_blank(subscription) else self.of_subscriptions.get(subscription, ())
        return bool(only) and role not in only

    def keeps_some_from(self, role: str) -> bool:
        """Return True if some subscriptions may exclude a role."""
        return self.prefixed or any(
            self.keeps_from(role, subscription) for subscription in self.of_subscriptions
        )

    def lacks_prefix(self, role: str, subscription: str) -> bool:
        """Return True if a subscription's name must begin with the role and does not."""
        return self.prefixed and not is_blank(subscription) and not subscription.startswith(role)


NO_GRANTS = Grants()


def read_grants(document: Mapping[str, Any]) -> Grants:
    """Return the grants in a document of a namespace's policies.

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

    The creator of a topic with the same name must not inherit grants to foreign roles.

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
