"""Limits on the binary port: number of connections, handshake deadline, request rate."""

from __future__ import annotations

from dataclasses import dataclass, field

import proto.PulsarApi_pb2 as pb
from proto.commands import (
    error_command,
    get_or_create_schema_failed,
    get_schema_failed,
    lookup_failed,
    partitions_failed,
    with_body,
)
from server.limits.connections import ConnectionBounds, ConnectionLimits, Refusals
from server.limits.unfinished_frames import FIRST_BYTES, UnfinishedFrames

_Type = pb.BaseCommand
_FORMS = {
    _Type.LOOKUP: ("lookupTopic", lookup_failed),
    _Type.PARTITIONED_METADATA: ("partitionMetadata", partitions_failed),
    _Type.GET_TOPICS_OF_NAMESPACE: ("getTopicsOfNamespace", error_command),
    _Type.WATCH_TOPIC_LIST: ("watchTopicList", error_command),
    _Type.PRODUCER: ("producer", error_command),
    _Type.SUBSCRIBE: ("subscribe", error_command),
    _Type.GET_LAST_MESSAGE_ID: ("getLastMessageId", error_command),
    _Type.CONSUMER_STATS: ("consumerStats", error_command),
    _Type.GET_SCHEMA: ("getSchema", get_schema_failed),
    _Type.GET_OR_CREATE_SCHEMA: ("getOrCreateSchema", get_or_create_schema_failed),
}
"""Error forms of the limited requests; commands that release resources are never refused."""
REQUESTS = frozenset(_FORMS)


@dataclass(slots=True)
class ClientLimits:
    """The limits on client connections that all connections of a process share.

    Attributes:
        connections: The limits on the number of connections.
        refusals: Counts refusals.
        handshake_seconds: Time from accept to CONNECT; 0 is unlimited.
        requests_a_second: The request rate of a connection; 0 is unlimited.
        unfinished: Bound on the bytes of incomplete frames.
        first: Bound on the bytes buffered for connections before CONNECT.
    """

    connections: ConnectionLimits = field(
        default_factory=lambda: ConnectionLimits(ConnectionBounds())
    )
    refusals: Refusals = field(default_factory=Refusals)
    handshake_seconds: float = 0.0
    requests_a_second: int = 0
    unfinished: UnfinishedFrames = field(default_factory=UnfinishedFrames)
    first: UnfinishedFrames = field(init=False)

    def __post_init__(self) -> None:
        self.first = UnfinishedFrames(FIRST_BYTES, self.refusals)

    def refusal(self, command: pb.BaseCommand) -> pb.BaseCommand:
        """Return the error for a request above the connection's request rate."""
        field_name, form = _FORMS[command.type]
        request_id = getattr(with_body(command, field_name), field_name).request_id
        text = (
            f"more than {self.requests_a_second} requests a second of one connection: ask again "
            "later (floodgateMaxRequestsPerSecondPerConnection)"
        )
        return form(request_id, pb.TooManyRequests, text)
