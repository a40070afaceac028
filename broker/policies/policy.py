"""A policy of namespaces and topics: its key, value, REST paths, and effect.

A document holds the policies of a namespace or topic: values of JSON as in requests and responses
of the admin REST, with upstream's names of a namespace's policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from broker.policies.effective import DEFAULTS
from broker.policies.values import boolean, long_number, members_of, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.policies.effective import EffectivePolicies
    from broker.policies.values import Member, Reader
    from server.configuration.known_keys import CheckedKeys


class PolicyName(Enum):
    """Policies of namespaces or topics; refusals contain the names."""

    ALL = auto()
    ALLOW_CLUSTERS = auto()
    ALLOW_CUSTOM_METRIC_LABELS = auto()
    ANTI_AFFINITY = auto()
    AUTO_SUBSCRIPTION_CREATION = auto()
    AUTO_TOPIC_CREATION = auto()
    BACKLOG = auto()
    COMPACTION = auto()
    DEDUPLICATION = auto()
    DEDUPLICATION_SNAPSHOT = auto()
    DELAYED_DELIVERY = auto()
    DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT = auto()
    ENCRYPTION = auto()
    ENTRY_FILTERS = auto()
    INACTIVE_TOPIC = auto()
    MAX_CONSUMERS = auto()
    MAX_PRODUCERS = auto()
    MAX_SUBSCRIPTIONS = auto()
    MAX_TOPICS = auto()
    MAX_UNACKED = auto()
    OFFLOAD = auto()
    PARTITION = auto()
    PERSISTENCE = auto()
    RATE = auto()
    REPLICATION = auto()
    REPLICATION_RATE = auto()
    RESOURCEGROUP = auto()
    RETENTION = auto()
    SCHEMA_COMPATIBILITY_STRATEGY = auto()
    SHADOW_TOPIC = auto()
    SUBSCRIPTION_AUTH_MODE = auto()
    SUBSCRIPTION_EXPIRATION_TIME = auto()
    TTL = auto()


class Null(Enum):
    """The meaning of a null or missing body."""

    VALUE = auto()
    """The reader's empty value: 0, or false."""
    REMOVES = auto()
    """The policy is removed."""
    KEEPS = auto()
    """A no-op."""


NO_CONTENT = object()
"""The response 204 for a policy not set."""


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of a policy of namespaces, or of topics.

    Attributes:
        path: The last part, below the namespace or topic.
        null: The meaning of null.
        unset: The response for a policy not set; None: 200 without a body.
        verb: The method that sets the policy.
        refusal: The sentence about a refused value; of a policy without a check of its own,
            about a number below 0.
        removable: Whether DELETE removes the policy.
        parameter: The query's parameter with the value, in place of a body.
        misses_policies: Whether a change for a missing namespace is refused with a sentence about
            missing policies, as by upstream for a few policies.
    """

    path: str
    null: Null = Null.REMOVES
    unset: Any = None
    verb: str = "POST"
    refusal: str = ""
    removable: bool = True
    parameter: str = ""
    misses_policies: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy.

    Attributes:
        key: Key in documents.
        needs: The permission to see and change the policy; None: a tenant's admin.
        read: Parses a value.
        namespace: Paths for namespaces.
        topic: Paths for topics.
        field: The field of the effective policies; the members of an object name their fields, of
            this field's value, or without it of the effective policies themselves.
        broker: The key of broker.conf with the default of a value that is no object.
        applied: Whether values of namespace and broker are shown as applied to a topic.
        per_cluster: Whether a namespace's policies show the value by cluster.
        of_superusers: Whether only superusers change the policy for namespaces (recorded).
    """

    key: str
    needs: PolicyName | None
    read: Reader
    namespace: Place | None = None
    topic: Place | None = None
    field: str = ""
    broker: str = ""
    applied: bool = True
    per_cluster: bool = False
    of_superusers: bool = False

    @property
    def members(self) -> Sequence[Member]:
        """The members of the value with an effect."""
        return [one for one in members_of(self.read) if one.field]

    def effect(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the fields of effective policies for a value."""
        if not self.members:
            return {self.field: value} if self.field else {}
        return self._fields({one.field: value[one.name] for one in self.members})

    def by_default(self, checked: CheckedKeys) -> dict[str, Any]:
        """Return the fields of the broker's own policies, from the keys of broker.conf."""
        if self.broker:
            return {self.field: _value(checked, self.broker, self.read)}
        with_keys = [one for one in self.members if one.broker]
        found = {one.field: _value(checked, one.broker, one.read) for one in with_keys}
        return self._fields(found) if found else {}

    def _fields(self, values: dict[str, Any]) -> dict[str, Any]:
        if not self.field:
            return values
        return {self.field: type(getattr(DEFAULTS, self.field))(**values)}

    def shown(self, own: EffectivePolicies) -> object:
        """Return effective policies as a value; None if they have no such field.

        An object without effect is shown empty.
        """
        if not self.members:
            if members_of(self.read):
                return self.read(None)
            return getattr(own, self.field) if self.field else None
        of: object = getattr(own, self.field) if self.field else own
        values = {one.name: getattr(of, one.field) for one in self.members}
        return {
            name: value.value if isinstance(value, Enum) else value
            for name, value in values.items()
        }


def _value(checked: CheckedKeys, key: str, read: Reader) -> object:
    if read in (number, long_number):
        return checked.integer(key)
    return checked.flag(key) if read is boolean else checked.value(key)
