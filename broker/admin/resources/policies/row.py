"""A row of the table of policies: paths, value, and responses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from broker.admin.resources.policies import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.admin.resources.policies.checks import Check
    from broker.admin.resources.policies.values import Reader
    from broker.authorization.operations import Needs
    from broker.configuration.config import BrokerConfig
    from broker.policies.effective import EffectivePolicies


class Null(Enum):
    """The meaning of a null or missing body."""

    VALUE = auto()
    """The reader's empty value: 0, or false."""
    REMOVES = auto()
    """The policy is removed."""
    KEEPS = auto()
    """A no-op."""


class Empty(Enum):
    """The two recorded responses for a policy not set."""

    NO_BODY = 200
    NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of a policy of namespaces, or of topics.

    Attributes:
        path: The last part, below the namespace or topic.
        verb: The method that sets the policy.
        refusal: The sentence about a refused value.
        null: The meaning of null.
        unset: The response for a policy not set.
        removable: Whether DELETE removes the policy.
        parameter: The query's parameter with the value, in place of a body.
        done: The status after setting.
        misses_policies: Whether a change for a missing namespace is refused with a sentence about
            missing policies, as by upstream for a few policies.
    """

    path: str
    verb: str = "POST"
    refusal: str = ""
    null: Null = Null.REMOVES
    unset: Any = Empty.NO_BODY
    removable: bool = True
    parameter: str = ""
    done: int = 204
    misses_policies: bool = False


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy.

    Attributes:
        key: Key in documents; see ``broker.policies.documents``.
        needs: The permission to see and change the policy.
        read: Parses a value.
        namespace: Paths for namespaces.
        topic: Paths for topics.
        check: Refuses values; called with the value, the sentence and the configuration.
        default: Returns the broker's value; None if not shown as applied.
        per_cluster: Whether a namespace's policies show the value by cluster.
        of_superusers: Whether only superusers change the policy for namespaces (recorded).
    """

    key: str
    needs: Needs
    read: Reader
    namespace: Place | None = None
    topic: Place | None = None
    check: Check = checks.anything
    default: Callable[[EffectivePolicies, BrokerConfig], object] | None = None
    per_cluster: bool = False
    of_superusers: bool = False
