"""A namespace's policies as JSON: what was set, and upstream's defaults for the rest.

Source: upstream Policies; the recorded body of ``GET /admin/v2/namespaces/{tenant}/{namespace}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import BadBodyError, strings, whole_number
from broker.admin.resources.policies.permissions import no_permissions
from broker.admin.resources.policies.rows import ROWS
from broker.bundles import MAX_BUNDLES, boundaries
from broker.stores.store import NamespacePolicies
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proto.names import NamespaceName


def policies_body(
    policies: NamespacePolicies, document: Mapping[str, object], cluster: str
) -> dict[str, object]:
    """Return the body of a namespace's policies.

    Args:
        policies: Its bundles.
        document: The policies about messages that were set.
        cluster: The broker's.
    """
    return {
        "auth_policies": no_permissions(),
        "replication_clusters": [cluster],
        "allowed_clusters": [],
        "bundles": {"boundaries": boundaries(policies.bundles), "numBundles": policies.bundles},
        **_DEFAULTS,
        **{
            key: {cluster: value} if key in _BY_CLUSTER else value
            for key, value in document.items()
        },
    }


_BY_CLUSTER = frozenset(row.key for row in ROWS if row.per_cluster)
_DEFAULTS: dict[str, object] = {
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
    """Read policies from a body; policies that are not kept are ignored.

    Raises:
        RestError: A cluster is not allowed, or the bundles cannot be kept.
        BadBodyError: It is of another form.
    """
    values = body or {}
    clusters = strings(values.get("replication_clusters", []), "replication_clusters")
    if clusters is None:
        raise BadBodyError(
            "replication_clusters should be an array of strings", upstream_status=500
        )
    for cluster in clusters:
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
