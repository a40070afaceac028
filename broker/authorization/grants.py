"""The grants of a namespace, as its policies keep them.

A document of a namespace's policies has them below ``auth_policies``: actions by role for the
namespace and for single topics, and the only roles that may use subscriptions of a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.authorization.operations import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    ByRole = Mapping[str, frozenset[Action]]

KEY = "auth_policies"
OF_NAMESPACE, OF_TOPICS = "namespace_auth", "destination_auth"
OF_SUBSCRIPTIONS = "subscription_auth_roles"
_ACTIONS = {action.value: action for action in Action}


@dataclass(frozen=True, slots=True)
class Grants:
    """What roles are granted in one namespace.

    Attributes:
        of_namespace: Actions on all its topics, by role.
        of_topics: Actions on single topics, by full name and role.
        of_subscriptions: The only roles that may use subscriptions of a name, by that name.
    """

    of_namespace: ByRole = field(default_factory=dict)
    of_topics: Mapping[str, ByRole] = field(default_factory=dict)
    of_subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)


NO_GRANTS = Grants()


def read_grants(document: Mapping[str, Any]) -> Grants:
    """Return the grants in the document of a namespace's policies.

    An action that this version does not know allows nothing.
    """
    kept = document.get(KEY)
    if not kept:
        return NO_GRANTS
    topics = kept.get(OF_TOPICS, {})
    subscriptions = kept.get(OF_SUBSCRIPTIONS, {})
    return Grants(
        _by_role(kept.get(OF_NAMESPACE, {})),
        {topic: _by_role(roles) for topic, roles in topics.items()},
        {name: frozenset(roles) for name, roles in subscriptions.items()},
    )


def _by_role(kept: Mapping[str, Any]) -> ByRole:
    return {
        role: frozenset(_ACTIONS[one] for one in actions or () if one in _ACTIONS)
        for role, actions in kept.items()
    }
