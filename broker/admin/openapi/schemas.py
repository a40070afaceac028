"""JSON schemas of request bodies used by several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.authorization.operations import Action
from broker.bundles import MAX_BUNDLES
from broker.policies.effective import QuotaAction
from broker.policies.values import long_number, schema_of, set_of_texts, text, texts_by_name

if TYPE_CHECKING:
    from enum import Enum

    from server.seeing.openapi import Schema

TEXT = schema_of(text)
WHOLE = schema_of(long_number)
BUNDLES: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_BUNDLES, "example": 4}
TEXTS = schema_of(set_of_texts)
PROPERTIES = schema_of(texts_by_name)


def _object(*required: str, **members: Schema) -> Schema:
    """Return the JSON schema of an object with the given members; some are required."""
    return {
        "type": "object",
        "properties": members,
        **({"required": list(required)} if required else {}),
    }


def _any_of(values: type[Enum]) -> Schema:
    return {"type": "string", "enum": [one.value for one in values]}


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
ACTIONS: Schema = {"type": "array", "items": _any_of(Action)}
QUOTA = _object("policy", limitSize=WHOLE, limitTime=WHOLE, policy=_any_of(QuotaAction))
POLICIES = _object(bundles=_object(numBundles=BUNDLES), replication_clusters=TEXTS)
