"""A row of the table of policies: its paths, its value, and what is shown of it."""

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
    """The meaning of a body that is null, or missing."""

    VALUE = auto()
    """The reader's value for none: 0, or false."""
    REMOVES = auto()
    """The policy is removed."""
    KEEPS = auto()
    """Nothing changes."""


class Empty(Enum):
    """The answer where nothing is set: the recordings have two sorts."""

    NO_BODY = 200
    NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of a policy of namespaces, or of topics.

    Attributes:
        path: The last part, below the namespace or topic.
        verb: The method that sets it.
        refusal: The sentence about a value that is refused.
        null: The meaning of null.
        unset: The answer where nothing is set.
        removable: Whether DELETE removes it.
        parameter: The parameter of the query that holds the value in place of a body.
        done: The status of the answer once it is set.
        misses_policies: Whether the refusal to change it names the policies of a namespace that
            does not exist, as upstream's does for a few.
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
        key: Of documents; see ``broker.policies.documents``.
        needs: The permission to see and change it.
        read: Reads its value.
        namespace: Where it is set for namespaces.
        topic: Where it is set for topics.
        check: Refuses values; called with the value, the sentence and the configuration.
        default: Returns the broker's own value; None where it is not shown as applied.
        per_cluster: Whether a namespace's policies show it by cluster.
        of_superusers: Whether superusers alone change it for namespaces (recorded).
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
