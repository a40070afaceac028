"""A namespace's policies as JSON: shown with upstream's defaults, and parsed at creation.

Source: upstream Policies; recorded bodies of ``GET`` and ``PUT`` of a namespace. At creation a real
broker checks clusters, retention, persistence and TTL, and stores all further values unchecked.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker.admin.bodies import whole_number
from broker.admin.resources.policies.checks import Asked
from broker.admin.resources.policies.checks import checked as checked_value
from broker.admin.resources.policies.permissions import no_permissions, permissions_of
from broker.admin.resources.policies.placement.offload_values import (
    OLD,
    POLICIES,
    checked,
    of_namespace,
    shown,
)
from broker.admin.resources.policies.quotas import quotas_of
from broker.bundles import MAX_BUNDLES, boundaries
from broker.policies.documents import LOCAL_POLICIES, SIZE_QUOTA
from broker.policies.table import TABLE
from broker.policies.values import (
    BadBodyError,
    boolean,
    long_number,
    object_by_name,
    set_of_texts,
    strings,
    texts_by_name,
    without_null,
)
from broker.stores.store import NamespacePolicies
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.configuration.config import BrokerConfig
    from broker.policies.policy import Policy
    from broker.policies.values import Reader
    from proto.names import NamespaceName


def policies_body(
    policies: NamespacePolicies, document: Mapping[str, object], cluster: str
) -> dict[str, object]:
    """Return a namespace's policies as JSON, with upstream's defaults."""
    offload = of_namespace(document)
    return {
        "auth_policies": no_permissions(),
        "replication_clusters": [cluster],
        "bundles": {"boundaries": boundaries(policies.bundles), "numBundles": policies.bundles},
        **_DEFAULTS,
        **{
            key: {cluster: value} if key in _BY_CLUSTER else value
            for key, value in document.items()
            if key != LOCAL_POLICIES
        },
        **({} if offload is None else {POLICIES: shown(offload)}),
    }


_BY_CLUSTER = frozenset(row.key for row in TABLE if row.per_cluster)
_DEFAULTS: dict[str, object] = {
    "allowed_clusters": [],
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}


def policies_of(
    body: dict[str, object] | None,
    namespace: NamespaceName,
    allowed_clusters: Sequence[str],
    default_bundles: int,
) -> NamespacePolicies:
    """Parse a new namespace's bundles from a request's body, and check its clusters.

    Raises:
        RestError: A cluster is not allowed, or the bundles are not supported.
        BadBodyError: A member has the wrong type.
    """
    values = body or {}
    clusters = strings(values.get("replication_clusters", []), "replication_clusters")
    if clusters is None:
        raise BadBodyError(
            "replication_clusters should be an array of strings", upstream_status=500
        )
    allowed = strings(values.get("allowed_clusters"), "allowed_clusters") or ()
    for cluster in (*clusters, *allowed):
        if cluster not in allowed_clusters:
            raise RestError(
                403,
                f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant "
                f"[{namespace.tenant}]",
            )
    return NamespacePolicies(_bundles(values.get("bundles"), default_bundles))


def _bundles(value: object, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, dict):
        raise BadBodyError("bundles should be an object with numBundles")
    given = strings(value.get("boundaries"), "boundaries")
    count = whole_number(value.get("numBundles"), "bundles.numBundles")
    if given:
        count = len(given) - 1
    if count > MAX_BUNDLES:
        raise RestError(412, f"Invalid number of bundles: a namespace may have {MAX_BUNDLES}")
    if given and list(given) != boundaries(max(count, 1)):
        raise RestError(501, "bundles of unequal size are not kept here: give numBundles only")
    return count if count > 0 else default


# -- parsed at creation --------------------------------------------------------------------------

_NOT_KEPT = (
    "clusterDispatchRate",
    "deleted",
    "latency_stats_sample_rate",
    "migrated",
    "resource_group_name",
)
_READERS: Mapping[str, Reader] = {
    "auth_policies": permissions_of,
    "allowed_clusters": set_of_texts,
    "properties": lambda value: texts_by_name(without_null(object_by_name(value))),
    POLICIES: checked,
    **dict.fromkeys(OLD, long_number),
}
"""Functions that parse the stored policies that are not in ``broker.policies.table``, by key."""
_OF_NAMESPACES = [(row, row.namespace) for row in TABLE if row.namespace is not None]
_ANY_BODY_SETS = "dispatcherPauseOnAckStatePersistentEnabled"


def document_of(
    values: Mapping[str, object], namespace: NamespaceName, config: BrokerConfig
) -> dict[str, object]:
    """Parse a new namespace's policies from a request's body, leaving out default values.

    Raises:
        RestError: A value is refused, or its policy is not supported.
        BadBodyError: A member has the wrong type.
    """
    for key in _NOT_KEPT:
        if values.get(key):
            raise RestError(501, f"{key}: not built here, leave it out")
    found: dict[str, object] = {}

    def keep(key: str, read: Reader) -> None:
        try:
            value = None if values.get(key) is None else read(values[key])
        except BadBodyError as error:
            raise BadBodyError(str(error).replace("the body", key, 1)) from None
        # True is always stored: the broker's own value may be false.
        if value is not None and (value is True or value != _DEFAULTS.get(key)):
            found[key] = value

    for key, read in _READERS.items():
        keep(key, read)
    # Before retention, whose check depends on quotas.
    keep("backlog_quota_map", lambda value: quotas_of(value, namespace))
    by_size = object_by_name(found.get("backlog_quota_map")).get(SIZE_QUOTA)
    quotas: Any = [] if by_size is None else [by_size]
    for row, place in _OF_NAMESPACES:
        keep(row.key, partial(_checked, row=row, asked=Asked(place.refusal, config, quotas)))
    return found


def _checked(value: object, row: Policy, asked: Asked) -> object:
    if row.per_cluster:
        value = _of_cluster(value, row.key, asked.config.cluster_name)
        if value is None:
            return None
    read: Any = boolean if row.key == _ANY_BODY_SETS else row.read
    return checked_value(row, read(value), asked)


def _of_cluster(value: object, key: str, cluster: str) -> object:
    given = without_null(object_by_name(value))
    by_cluster = {name: object_by_name(one) for name, one in given.items()}
    for other in by_cluster.keys() - {cluster}:
        raise RestError(412, f"{key} of cluster {other[:100]!r}: this broker's is {cluster!r}")
    return by_cluster.get(cluster)
