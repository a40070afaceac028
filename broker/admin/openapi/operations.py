"""OpenAPI operations of the admin REST: one for each method of each path."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

from broker.admin.negotiation import METADATA_TYPE
from broker.admin.openapi.schemas import NUMBER_OF_PARTITIONS, WHOLE
from broker.admin.paths import PathTable, Takes
from server.http import JSON_TYPE
from server.seeing.openapi import Operation, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.admin.paths import Endpoint, Handler
    from server.seeing.openapi import Schema

_FROM_ONE = {**WHOLE, "minimum": 1}
_NOT_NEGATIVE = {"type": "integer", "format": "int32", "minimum": 0}
_NAME = {"type": "string", "pattern": "^[-=:.A-Za-z0-9_]+$"}
_SOME = {"type": "string", "minLength": 1}
_BUNDLE = {"type": "string", "pattern": "^0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}$"}
_FLAG = {"type": "boolean"}

IN_PATHS = {
    one.name: one
    for one in (
        Parameter("tenant", "A tenant", _NAME, "public"),
        Parameter("namespace", "A namespace of the tenant", _NAME, "default"),
        Parameter("topic", "A topic, its name percent-encoded", _SOME, "orders"),
        Parameter("subName", "A subscription, its name encoded", _SOME, "billing"),
        Parameter("subscription", "A subscription, its name encoded", _SOME, "billing"),
        Parameter("cluster", "A cluster", example="standalone"),
        Parameter("bundle", "A bundle of topics", _BUNDLE, "0x00000000_0x40000000"),
        Parameter("role", "A role", example="ann"),
        Parameter("key", "A key", example="brokerShutdownTimeoutMs"),
        Parameter("value", "Its value", example="60000"),
        Parameter("version", "A version of a schema", WHOLE, 0),
        Parameter("timestamp", "Milliseconds since 1970", WHOLE, 0),
        Parameter("ledgerId", "A ledger", WHOLE, 0),
        Parameter("entryId", "An entry of the ledger", WHOLE, 0),
        Parameter("messagePosition", "The n-th message, from 1 on", _FROM_ONE, 1),
        Parameter("numMessages", "The number of messages", WHOLE, 1),
        Parameter("expireTimeInSeconds", "The age in seconds", WHOLE, 3600),
        Parameter("rest", "The rest of the path"),
    )
}
"""Variables of paths by name; missing variables have self-explanatory names."""

IN_QUERIES = {
    one.name: one
    for one in (
        Parameter("applied", "Show the effective policy where none is set", _FLAG),
        Parameter("authoritative", "Another broker has chosen this broker", _FLAG),
        Parameter(
            "backlogQuotaType",
            "The kind of backlog quota",
            {"type": "string", "enum": ["destination_storage", "message_age"]},
        ),
        Parameter("bundle", "Topics of this bundle only"),
        Parameter("checkAllowAutoCreation", "Create the topic if that is allowed", _FLAG),
        Parameter("excludeConsumers", "Leave consumers out", _FLAG),
        Parameter("excludePublishers", "Leave producers out", _FLAG),
        Parameter("force", "Also while clients use it", _FLAG),
        Parameter("getEarliestTimeInBacklog", "Show the oldest backlog message's time", _FLAG),
        Parameter("isGlobal", "The topic's global policy, not its local one", _FLAG),
        Parameter("tenant", "The tenant of the namespaces"),
        Parameter("includeSystemTopic", "List system topics too", _FLAG),
        Parameter(
            "initialPosition",
            "Count messages from the earliest or from the latest",
            {"type": "string", "enum": ["earliest", "latest"]},
        ),
        Parameter("key", "The property to remove"),
        Parameter("listenerName", "The listener of the returned address"),
        Parameter("messagePosition", "The n-th message, from 1 on", _FROM_ONE),
        Parameter("messageTTL", "Seconds", _NOT_NEGATIVE),
        Parameter("metadata", "Show ledgers too", _FLAG),
        Parameter(
            "mode",
            "Only topics of this domain, or all",
            {"type": "string", "enum": ["PERSISTENT", "NON_PERSISTENT", "ALL"]},
        ),
        Parameter("perPartition", "Show each partition", _FLAG),
        Parameter("subscriptionExpirationTime", "Minutes", _NOT_NEGATIVE),
        Parameter("properties", "Topics with these properties: key=value,key=value"),
        Parameter("subscriptionBacklogSize", "Show the size of each backlog", _FLAG),
    )
}
"""Parameters of queries by name."""


_BODILESS = ("GET", "DELETE")


def admin_operations(endpoints: Iterable[Endpoint]) -> Iterator[Operation]:
    """Yield the OpenAPI operations that describe the given endpoints.

    Persistent and non-persistent topics have separate paths.
    """
    for path, methods in PathTable(endpoints).templates():
        for method, served in methods.items():
            yield _operation(method, path, served)


def _operation(method: str, path: str, served: Sequence[Endpoint]) -> Operation:
    first = served[0]
    bodies = {kind: schema for one in served for kind, schema in _bodies(method, one)}
    read = dict.fromkeys(name for one in served for name in one.query)
    one = Operation(
        method=method,
        path=path,
        what=_sentence(first.handler),
        tag=_tag(path),
        path_parameters=IN_PATHS,
        query=tuple(IN_QUERIES[name] for name in read),
        bodies=bodies,
        body_required=any(one.body_required and _schema(one) is not None for one in served),
        built=first.built,
        done=tuple(dict.fromkeys(status for one in served for status in one.statuses)),
    )
    statuses = (*_refusals(method, one.variables, has_body=bool(bodies)), *first.refused)
    return replace(one, refused=statuses)


def _schema(endpoint: Endpoint) -> Schema | None:
    return NUMBER_OF_PARTITIONS if endpoint.takes is Takes.NUMBER else endpoint.body


def _bodies(method: str, endpoint: Endpoint) -> Iterator[tuple[str, Schema]]:
    known, takes = _schema(endpoint), endpoint.takes
    if takes is Takes.METADATA:
        yield METADATA_TYPE, known or {}
    elif known is not None:
        yield JSON_TYPE, known
        if takes is Takes.NUMBER:
            yield "text/plain", known
    elif takes is not Takes.NOTHING and method not in _BODILESS:
        yield JSON_TYPE, {}


def _refusals(method: str, variables: Sequence[str], *, has_body: bool) -> Iterator[int]:
    """Yield the HTTP error statuses that an operation may return.

    They depend on its method, its path variables and whether it has a body.
    """
    if "namespace" in variables:
        yield 307
    if variables or has_body:
        yield 400
    if variables:
        yield 404
    if "topic" in variables:
        yield 405
    if method != "GET":
        yield 409
    if variables or has_body:
        yield 412
    if has_body:
        yield 415


def _sentence(handler: Handler) -> str:
    return (inspect.getdoc(handler) or "").split("\n\n")[0].replace("\n", " ")


def _tag(path: str) -> str:
    root, _, rest = path.removeprefix("/").partition("/")
    if root == "lookup":
        return root
    subject = rest.split("/")[1]
    return "topics" if subject in ("persistent", "non-persistent") else subject
