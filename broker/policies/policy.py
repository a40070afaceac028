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
    """Names of policies of namespaces or topics, used in the error texts of authorization."""

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
    """The meaning of a null or missing body in a request that sets a policy."""

    VALUE = auto()
    """The value becomes the reader's empty value: 0, or false."""
    REMOVES = auto()
    """The policy is removed."""
    KEEPS = auto()
    """Nothing changes."""


NO_CONTENT = object()
"""The response 204 for a policy not set."""
NO_NAMESPACE = "Namespace does not exist"
NO_POLICIES = "Namespace policies does not exist"


@dataclass(frozen=True, slots=True)
class Place:
    """The REST paths of a policy for namespaces, or for topics, and their responses.

    Attributes:
        path: The end of the REST path, after the namespace or topic.
        null: The effect of a null or missing body.
        unset: The response for a policy not set; None: 200 without a body.
        verb: The method that sets the policy.
        refusal: The error text for a refused value; for a policy without a check of its own,
            the error text for a number below 0.
        removable: Whether DELETE removes the policy.
        parameter: Name of the query parameter with the value, if the value is not in the body.
        unshown: The error text if the namespace of a shown policy does not exist.
        unchanged: The error text if the namespace of a changed policy does not exist.
    """

    path: str
    null: Null = Null.REMOVES
    unset: Any = None
    verb: str = "POST"
    refusal: str = ""
    removable: bool = True
    parameter: str = ""
    unshown: str = NO_NAMESPACE
    unchanged: str = NO_NAMESPACE


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of namespaces or topics: its key, value, REST paths, and effect.

    Attributes:
        key: The key of the value in stored documents.
        needs: The permission to see and change the policy; None: a tenant's admin.
        read: Parses a value.
        namespace: Paths for namespaces.
        topic: Paths for topics.
        field: The field of ``EffectivePolicies`` with the value. For an object, each member names
            a field of this field's value, or of ``EffectivePolicies`` if this is empty.
        broker: The key of broker.conf with the default value, unless the value is an object.
        applied: Whether values of namespace and broker are shown as applied to a topic.
        per_cluster: Whether a namespace's policies show the value by cluster.
        of_superusers: Whether only superusers change the policy for namespaces (recorded).
        has_global: Whether a topic has a global value of the policy beside its local one.
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
    has_global: bool = True

    @property
    def members(self) -> Sequence[Member]:
        """The members of the policy's JSON value that affect this broker."""
        return [one for one in members_of(self.read) if one.field]

    def effect(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the fields of ``EffectivePolicies`` that a value of the policy sets."""
        if not self.members:
            return {self.field: value} if self.field else {}
        return self._fields({one.field: value[one.name] for one in self.members})

    def by_default(self, checked: CheckedKeys) -> dict[str, Any]:
        """Return the fields of ``EffectivePolicies`` that broker.conf sets for the policy."""
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
        """Return the policy's effective value for a topic, as JSON; None if it has no effect here.

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
