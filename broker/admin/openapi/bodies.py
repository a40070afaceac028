"""Bodies of requests, as JSON schemas, by the handlers that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.resources.policies.placement.local import read_bookies
from broker.admin.resources.policies.placement.offload_values import BODY as OFFLOAD
from broker.admin.resources.policies.rate_rows import read_rate
from broker.admin.resources.policies.values import long_number, schema_of
from broker.bundles import MAX_BUNDLES

if TYPE_CHECKING:
    from server.seeing.openapi import Schema

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {
    "type": "integer",
    "format": "int64",
    "minimum": -(2**63),
    "maximum": 2**63 - 1,
}
_BUNDLES: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_BUNDLES, "example": 4}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_PROPERTIES: Schema = {"type": "object", "additionalProperties": _TEXT}


def _object(*required: str, **members: Schema) -> Schema:
    return {
        "type": "object",
        "properties": members,
        **({"required": list(required)} if required else {}),
    }


NUMBER_OF_PARTITIONS: Schema = {"type": "integer", "minimum": 1, "example": 3}
_TENANT = _object("allowedClusters", adminRoles=_TEXTS, allowedClusters=_TEXTS)
_SCHEMA = _object("type", "schema", type=_TEXT, schema=_TEXT, properties=_PROPERTIES)
_MESSAGE_ID = _object("ledgerId", "entryId", ledgerId=_WHOLE, entryId=_WHOLE, partitionIndex=_WHOLE)
_START: Schema = {"anyOf": [{"type": "string", "enum": ["latest", "earliest"]}, _MESSAGE_ID]}
_ACTIONS: Schema = {
    "type": "array",
    "items": {
        "type": "string",
        "enum": ["produce", "consume", "functions", "sources", "sinks", "packages"],
    },
}
_QUOTA = _object(
    "policy",
    limitSize=_WHOLE,
    limitTime=_WHOLE,
    policy={
        "type": "string",
        "enum": [
            "producer_request_hold",
            "producer_exception",
            "consumer_backlog_eviction",
        ],
    },
)
_POLICIES = _object(bundles=_object(numBundles=_BUNDLES), replication_clusters=_TEXTS)

BODIES: dict[str, Schema] = {
    "CursorAdmin.expire_to_id": _MESSAGE_ID,
    "CursorAdmin.reset_to_id": _MESSAGE_ID,
    "LifecycleAdmin.offload": _MESSAGE_ID,
    "LocalPolicyAdmin.set_bookies": schema_of(read_bookies),
    "LocalPolicyAdmin.set_group": {"type": "string"},
    "NamespaceAdmin.create": _POLICIES,
    "OffloadAdmin.set": OFFLOAD,
    "OffloadAdmin.set_of_topic": OFFLOAD,
    "OtherPolicyAdmin.add_properties": _PROPERTIES,
    "OtherPolicyAdmin.set_clusters": _TEXTS,
    "OtherPolicyAdmin.set_rate": schema_of(read_rate),
    "OtherPolicyAdmin.set_topic_clusters": _TEXTS,
    "PermissionAdmin.grant_on_namespace": _ACTIONS,
    "PermissionAdmin.grant_on_one": _TEXTS,
    "PermissionAdmin.grant_on_topic": _ACTIONS,
    "QuotaAdmin.set_of_namespace": _QUOTA,
    "QuotaAdmin.set_of_topic": _QUOTA,
    "ReadingAdmin.analyze": _MESSAGE_ID,
    "ReadingAdmin.backlog_size": _MESSAGE_ID,
    "SchemaAdmin.compatibility": _SCHEMA,
    "SchemaAdmin.post": _SCHEMA,
    "SchemaAdmin.version_of": _SCHEMA,
    "ShadowTopicAdmin.set": _TEXTS,
    "SubscriptionAdmin.create": _START,
    "SubscriptionAdmin.set_properties": _PROPERTIES,
    "SubscriptionAdmin.set_replicated": {"type": "boolean"},
    "TenantAdmin.create": _TENANT,
    "TenantAdmin.update": _TENANT,
    "TopicAdmin.create": _PROPERTIES,
    "TopicAdmin.create_with_metadata": _object(
        "partitions", partitions=NUMBER_OF_PARTITIONS, properties=_PROPERTIES
    ),
    "TopicAdmin.update_properties": _PROPERTIES,
    "_Number.set": schema_of(long_number),
}
"""The bodies that handlers read; policies in the table say it themselves."""

REQUIRED = frozenset(BODIES) - {
    "NamespaceAdmin.create",
    "ReadingAdmin.analyze",
    "SubscriptionAdmin.create",
    "TopicAdmin.create",
} | {"TopicAdmin.create_partitioned", "TopicAdmin.grow"}
"""The handlers that cannot do without one."""
