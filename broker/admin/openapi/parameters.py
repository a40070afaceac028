"""Descriptions of parameters in paths and queries."""

from __future__ import annotations

from server.seeing.openapi import Parameter

_LONG = {"type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1}
_FROM_ONE = {**_LONG, "minimum": 1}
_NAME = {"type": "string", "pattern": "^[-=:.A-Za-z0-9_]+$"}
_SOME = {"type": "string", "minLength": 1}
_BUNDLE = {"type": "string", "pattern": "^0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}$"}
_FLAG = {"type": "boolean"}

IN_PATHS = {
    one.name: one
    for one in (
        Parameter("tenant", "A tenant", _NAME, "public"),
        Parameter("namespace", "A namespace of it", _NAME, "default"),
        Parameter("topic", "A topic, its name encoded", _SOME, "orders"),
        Parameter("subName", "A subscription, its name encoded", _SOME, "billing"),
        Parameter("subscription", "A subscription, its name encoded", _SOME, "billing"),
        Parameter("cluster", "A cluster", example="standalone"),
        Parameter("bundle", "A bundle of topics", _BUNDLE, "0x00000000_0x40000000"),
        Parameter("role", "A role", example="ann"),
        Parameter("key", "A key", example="brokerShutdownTimeoutMs"),
        Parameter("value", "Its value", example="60000"),
        Parameter("version", "A version of a schema", _LONG, 0),
        Parameter("timestamp", "Milliseconds since 1970", _LONG, 0),
        Parameter("ledgerId", "A ledger", _LONG, 0),
        Parameter("entryId", "An entry of it", _LONG, 0),
        Parameter("messagePosition", "The n-th message, from 1 on", _FROM_ONE, 1),
        Parameter("numMessages", "How many messages", _LONG, 1),
        Parameter("expireTimeInSeconds", "How old", _LONG, 3600),
        Parameter("rest", "One segment or more"),
    )
}
"""Variables of paths by name; missing variables have self-explanatory names."""

IN_QUERIES = {
    one.name: one
    for one in (
        Parameter("applied", "Show the policy in force where none is set", _FLAG),
        Parameter("authoritative", "Another broker has chosen this one", _FLAG),
        Parameter(
            "backlogQuotaType",
            "The kind of backlog quota",
            {"type": "string", "enum": ["destination_storage", "message_age"]},
        ),
        Parameter("bundle", "Topics of this bundle only"),
        Parameter("checkAllowAutoCreation", "Create the topic if that is allowed", _FLAG),
        Parameter("excludeConsumers", "Leave consumers out", _FLAG),
        Parameter("excludePublishers", "Leave producers out", _FLAG),
        Parameter("force", "Also while somebody uses it", _FLAG),
        Parameter("getEarliestTimeInBacklog", "Show the time of the oldest message left", _FLAG),
        Parameter("tenant", "Whose namespaces"),
        Parameter("includeSystemTopic", "List system topics too", _FLAG),
        Parameter(
            "initialPosition",
            "The end from which messages are counted",
            {"type": "string", "enum": ["earliest", "latest"]},
        ),
        Parameter("key", "The property to remove"),
        Parameter("listenerName", "The listener whose address is wanted"),
        Parameter("messagePosition", "The n-th message, from 1 on", _FROM_ONE),
        Parameter("messageTTL", "Seconds", {"type": "integer", "format": "int32", "minimum": 0}),
        Parameter("metadata", "Show ledgers too", _FLAG),
        Parameter(
            "mode",
            "Topics of which domains",
            {"type": "string", "enum": ["PERSISTENT", "NON_PERSISTENT", "ALL"]},
        ),
        Parameter("perPartition", "Show each partition", _FLAG),
        Parameter("properties", "Topics with these properties: key=value,key=value"),
    )
}
"""Parameters of queries by name."""
