"""JSON schemas of request bodies used by several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.bundles import MAX_BUNDLES

if TYPE_CHECKING:
    from server.seeing.openapi import Schema

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {
    "type": "integer",
    "format": "int64",
    "minimum": -(2**63),
    "maximum": 2**63 - 1,
}
BUNDLES: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_BUNDLES, "example": 4}
TEXTS: Schema = {"type": "array", "items": TEXT}
PROPERTIES: Schema = {"type": "object", "additionalProperties": TEXT}


def _object(*required: str, **members: Schema) -> Schema:
    """Return the JSON schema of an object with the given members; some are required."""
    return {
        "type": "object",
        "properties": members,
        **({"required": list(required)} if required else {}),
    }


NUMBER_OF_PARTITIONS: Schema = {"type": "integer", "minimum": 1, "example": 3}
PARTITIONS_WITH_PROPERTIES = _object(
    "partitions", partitions=NUMBER_OF_PARTITIONS, properties=PROPERTIES
)
TENANT = _object("allowedClusters", adminRoles=TEXTS, allowedClusters=TEXTS)
SCHEMA = _object("type", "schema", type=TEXT, schema=TEXT, properties=PROPERTIES)
MESSAGE_ID = _object(
    "ledgerId",
    "entryId",
    ledgerId=WHOLE,
    entryId=WHOLE,
    partitionIndex=WHOLE,
    batchIndex=WHOLE,
    excluded={"type": "boolean"},
)
START: Schema = {"anyOf": [{"type": "string", "enum": ["latest", "earliest"]}, MESSAGE_ID]}
ACTIONS: Schema = {
    "type": "array",
    "items": {
        "type": "string",
        "enum": ["produce", "consume", "functions", "sources", "sinks", "packages"],
    },
}
QUOTA = _object(
    "policy",
    limitSize=WHOLE,
    limitTime=WHOLE,
    policy={
        "type": "string",
        "enum": [
            "producer_request_hold",
            "producer_exception",
            "consumer_backlog_eviction",
        ],
    },
)
POLICIES = _object(bundles=_object(numBundles=BUNDLES), replication_clusters=TEXTS)
