"""Operations subject to authorization, named as upstream, and the grants allowing each.

Operations without a grant are allowed only to superusers and the tenant's admins, like operations
on tenants and on policies of namespaces and topics.

Source: upstream NamespaceOperation, TopicOperation, PulsarAuthorizationProvider.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from broker.policies.policy import PolicyName as PolicyName


class Action(Enum):
    """The actions that a grant can allow (upstream: AuthAction)."""

    PRODUCE = "produce"
    CONSUME = "consume"
    FUNCTIONS = "functions"
    SOURCES = "sources"
    SINKS = "sinks"
    PACKAGES = "packages"


class Level(Enum):
    """The peers that may send requests without a namespace or topic, to which no grants apply."""

    AUTHENTICATED = auto()
    """Every authenticated peer is allowed."""
    TENANT_ADMIN = auto()
    """Admins of the tenant are allowed."""
    SUPERUSER = auto()


class BrokerOperation(Enum):
    """Operations on brokers, allowed to superusers only; error texts show the operations' names."""

    CHECK_BACKLOG_QUOTA = auto()
    DELETE_DYNAMIC_CONFIGURATION = auto()
    GET_INTERNAL_CONFIGURATION_DATA = auto()
    GET_LEADER_BROKER = auto()
    HEALTH_CHECK = auto()
    LIST_BROKERS = auto()
    LIST_DYNAMIC_CONFIGURATIONS = auto()
    LIST_OWNED_NAMESPACES = auto()
    LIST_RUNTIME_CONFIGURATIONS = auto()
    SHUTDOWN = auto()
    UPDATE_DYNAMIC_CONFIGURATION = auto()


class ClusterOperation(Enum):
    """Operations on clusters, allowed to superusers only."""

    CREATE_CLUSTER = auto()
    DELETE_CLUSTER = auto()
    GET_CLUSTER = auto()
    GET_FAILURE_DOMAIN = auto()
    GET_PEER_CLUSTER = auto()
    UPDATE_CLUSTER = auto()


class ClusterPolicyOperation(Enum):
    """Operations on policies of clusters, allowed to superusers only."""

    READ = auto()


class TenantOperation(Enum):
    """Operations on a tenant, allowed to superusers and the tenant's admins."""

    GET_TENANT = auto()
    CREATE_TENANT = auto()
    UPDATE_TENANT = auto()
    DELETE_TENANT = auto()
    LIST_TENANTS = auto()
    """Allowed to superusers only, because the request's path names no tenant."""
    LIST_NAMESPACES = auto()
    CREATE_NAMESPACE = auto()
    DELETE_NAMESPACE = auto()


class NamespaceOperation(Enum):
    """The operations on a namespace that authorization distinguishes."""

    CREATE_TOPIC = auto()
    DELETE_TOPIC = auto()
    GET_TOPICS = auto()
    GET_BUNDLE = auto()
    GET_PERMISSION = auto()
    GRANT_PERMISSION = auto()
    REVOKE_PERMISSION = auto()
    CLEAR_BACKLOG = auto()
    UNSUBSCRIBE = auto()
    TRIM_TOPIC = auto()


class TopicOperation(Enum):
    """The operations on a topic that authorization distinguishes."""

    LOOKUP = auto()
    PRODUCE = auto()
    CONSUME = auto()
    SUBSCRIBE = auto()
    UNSUBSCRIBE = auto()
    GET_SUBSCRIPTIONS = auto()
    GET_STATS = auto()
    GET_METADATA = auto()
    UPDATE_METADATA = auto()
    DELETE_METADATA = auto()
    GET_BACKLOG_SIZE = auto()
    PEEK_MESSAGES = auto()
    RESET_CURSOR = auto()
    SKIP = auto()
    EXPIRE_MESSAGES = auto()
    GET_REPLICATED_SUBSCRIPTION_STATUS = auto()
    SET_REPLICATED_SUBSCRIPTION_STATUS = auto()
    COMPACT = auto()
    OFFLOAD = auto()
    TERMINATE = auto()
    TRIM_TOPIC = auto()
    UNLOAD = auto()


_NOTHING: frozenset[Action] = frozenset()
_CONSUME = frozenset({Action.CONSUME})
_EITHER = frozenset({Action.PRODUCE, Action.CONSUME})

Needs: TypeAlias = (
    Level
    | BrokerOperation
    | ClusterOperation
    | ClusterPolicyOperation
    | TenantOperation
    | NamespaceOperation
    | TopicOperation
    | PolicyName
)
"""Every permission that a request may require."""

GRANTED_BY: dict[NamespaceOperation | TopicOperation, frozenset[Action]] = {
    **dict.fromkeys((*NamespaceOperation, *TopicOperation), _NOTHING),
    NamespaceOperation.GET_TOPICS: _EITHER,
    NamespaceOperation.GET_BUNDLE: _EITHER,
    NamespaceOperation.CLEAR_BACKLOG: _CONSUME,
    NamespaceOperation.UNSUBSCRIBE: _CONSUME,
    NamespaceOperation.TRIM_TOPIC: _CONSUME,
    TopicOperation.LOOKUP: _EITHER,
    TopicOperation.GET_STATS: _EITHER,
    TopicOperation.GET_METADATA: _EITHER,
    TopicOperation.PRODUCE: frozenset({Action.PRODUCE}),
    TopicOperation.CONSUME: _CONSUME,
    TopicOperation.SUBSCRIBE: _CONSUME,
    TopicOperation.UNSUBSCRIBE: _CONSUME,
    TopicOperation.GET_SUBSCRIPTIONS: _CONSUME,
    TopicOperation.SKIP: _CONSUME,
    TopicOperation.EXPIRE_MESSAGES: _CONSUME,
    TopicOperation.PEEK_MESSAGES: _CONSUME,
    TopicOperation.RESET_CURSOR: _CONSUME,
    TopicOperation.GET_BACKLOG_SIZE: _CONSUME,
    TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS: _CONSUME,
    TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS: _CONSUME,
}
"""The grants that allow each operation; one of them is enough."""
