"""One client's connection to the broker: handshake, dispatch, answers, and its end.

State is an enum and a table: TRANSITIONS says which commands are legal in which state. When
the peer leaves, everything the connection held comes back in that turn.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import TOO_MANY_LOOKUPS, RequestError, UnansweredRequestError
from proto.command_bounds import type_name
from proto.commands import error_command, lookup_failed, partitions_failed, with_body
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, NamespaceName
from proto.unparsed import request_id_in
from proto.version import SERVER_VERSION
from server.connection.served_connection import FlowParts, ServedConnection
from server.tasks.request_tasks import RequestTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from broker.configuration.config import BrokerConfig
    from broker.listing.handler import GetTopicsHandler
    from broker.topics.lookup import LookupHandler
    from broker.watches.service import TopicListService
    from limiter.flow.lookup_semaphore import LookupPermit, LookupSemaphore
    from limiter.memory.response_memory import ResponseMemory
    from proto.frames import Frame
    from server.connection.counters import ConnectionCounters
    from server.connection.unanswered_requests import UnansweredRequests

Type = pb.BaseCommand
PROTOCOL_VERSION = 21
"""Newest protocol version this broker speaks."""


class ServerCnxState(Enum):
    """A stage of a connection's life (upstream: ServerCnx.State)."""

    START = "before CONNECT"
    CONNECTED = "connected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """The parts of a broker that all its connections work with."""

    config: BrokerConfig
    as_shipped: bool
    flow: FlowParts
    lookups: LookupSemaphore
    unanswered: UnansweredRequests
    lookup_handler: LookupHandler
    topics_handler: GetTopicsHandler
    watches: TopicListService
    memory: ResponseMemory
    counters: ConnectionCounters
    connections: set[ServerCnx]


class ServerCnx(ServedConnection):
    """The broker's side of one connection.

    Source: upstream ServerCnx.
    """

    def __init__(self, parts: BrokerParts) -> None:
        super().__init__(parts.flow, parts.config.max_message_size)
        self._parts = parts
        self._requests = RequestTasks(self._answer_unexpected)
        self.state = ServerCnxState.START
        self.client_version = ""
        self._chunk_answered = 0

    # -- life ---------------------------------------------------------------------------------

    def connected(self) -> None:
        """Count the connection."""
        super().connected()
        self._parts.connections.add(self)
        self._parts.counters.opened()

    def lost(self, error: Exception | None) -> None:
        """Give back everything in this turn: queued places, permits, lookup places."""
        super().lost(error)
        self.state = ServerCnxState.FAILED
        self._parts.watches.cancel_owner(self)
        self._parts.memory.cancel_owner(self)
        self._parts.lookups.cancel_owner(self)
        self._requests.cancel_all()
        self._parts.connections.discard(self)
        self._parts.counters.closed()

    async def drain(self) -> None:
        """Take no more requests, let those under way answer, then close."""
        self.take_no_more()
        await self._requests.finished()
        self.close()

    # -- dispatch -----------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """True if CONNECT was answered."""
        return self.state is not ServerCnxState.START

    def serves(self, kind: int) -> bool:
        """Tell whether a command of this type is legal now."""
        return kind in TRANSITIONS[self.state]

    def command_received(self, command: pb.BaseCommand) -> None:
        """Handle one command that is legal now."""
        TRANSITIONS[self.state][command.type](self, command)

    def refuse(self, kind: int, frame: Frame) -> None:
        """Answer a request this broker does not serve; close for anything else."""
        request_id = None
        if self.state is ServerCnxState.CONNECTED and kind in _REQUESTS:
            request_id = request_id_in(kind, frame.command_bytes())
        if request_id is None:
            raise RemoteProtocolError(f"{type_name(kind)} is not legal {self.state.value}")
        name = type_name(kind)
        text = f"{name} is not served by this version of Floodgate, which only lists topics"
        self.send(error_command(request_id, pb.NotAllowedError, text))

    def handle_connect(self, command: pb.BaseCommand) -> None:
        """Answer CONNECT: the lower of both protocol versions, and what this broker can."""
        connect = with_body(command, "connect").connect
        self.client_version = connect.client_version
        if connect.HasField("proxy_version"):
            # Many clients are behind it, and it is the proxy that is fair between them.
            self.stands_for_many()
            self._parts.memory.exempt_from_share(self)
        self.state = ServerCnxState.CONNECTED
        self._parts.counters.connect_succeeded()
        config = self._parts.config
        connected = pb.CommandConnected(
            server_version=SERVER_VERSION,
            protocol_version=min(connect.protocol_version, PROTOCOL_VERSION),
            max_message_size=config.max_message_size,
        )
        watchers = config.announces_topic_watchers
        flags = connected.feature_flags
        flags.supports_topic_watchers = watchers
        flags.supports_get_partitioned_metadata_without_auto_creation = True
        flags.supports_repl_dedup_by_lid_and_eid = True
        flags.supports_topic_watcher_reconcile = watchers
        self.send(pb.BaseCommand(type=Type.CONNECTED, connected=connected))

    def handle_ping(self, command: pb.BaseCommand) -> None:
        """Answer PING."""
        with_body(command, "ping")
        self.answer_ping()

    def handle_pong(self, command: pb.BaseCommand) -> None:
        """A PONG proves that the peer lives; the frame itself already did."""
        with_body(command, "pong")

    # -- metadata requests --------------------------------------------------------------------

    def handle_lookup(self, command: pb.BaseCommand) -> None:
        """Start a LOOKUP."""
        request = with_body(command, "lookupTopic").lookupTopic
        self._start(request.request_id, lookup_failed, lambda _: self._lookup(request))

    async def _lookup(self, request: pb.CommandLookupTopic) -> None:
        response = await self._parts.lookup_handler.lookup(request)
        self.send(pb.BaseCommand(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=response))

    def handle_partitioned_metadata(self, command: pb.BaseCommand) -> None:
        """Start a PARTITIONED_METADATA."""
        request = with_body(command, "partitionMetadata").partitionMetadata
        self._start(
            request.request_id, partitions_failed, lambda permit: self._partitions(request, permit)
        )

    async def _partitions(
        self, request: pb.CommandPartitionedTopicMetadata, permit: LookupPermit
    ) -> None:
        with self._left_unanswered(request.topic, permit):
            response = await self._parts.lookup_handler.partitions(request)
            self._send_partitions(response)

    def _send_partitions(self, response: pb.CommandPartitionedTopicMetadataResponse) -> None:
        command = pb.BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE)
        command.partitionMetadataResponse.CopyFrom(response)
        self.send(command)

    def handle_get_topics(self, command: pb.BaseCommand) -> None:
        """Start a GET_TOPICS_OF_NAMESPACE; as shipped, a malformed namespace closes."""
        request = with_body(command, "getTopicsOfNamespace").getTopicsOfNamespace
        namespace = self._namespace_of(request)
        if namespace is None:
            return
        if self._answer_at_once(request, namespace):
            return
        try:
            properties = self._parts.topics_handler.properties_of(request)
        except RequestError as error:
            self.send(error_command(request.request_id, error.server_error, error.message))
            return
        self._start(
            request.request_id,
            error_command,
            lambda permit: self._get_topics(request, namespace, permit),
            self._parts.topics_handler.expected_bytes(namespace, request.mode, properties),
        )

    def _answer_at_once(
        self, request: pb.CommandGetTopicsOfNamespace, namespace: NamespaceName
    ) -> bool:
        """Answer what needs no wait, one listing a chunk.

        Those that come with it wait in tasks, so that other connections have their turn.
        """
        alone = not (
            self._requests
            or self._chunk_answered == self.chunks_received
            or self._parts.lookups.full
        )
        handler = self._parts.topics_handler
        answered = handler.answer_at_once(request, namespace, self, alone=alone)
        if answered:
            self._chunk_answered = self.chunks_received
        return answered

    async def _get_topics(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        permit: LookupPermit,
    ) -> None:
        with self._left_unanswered(str(namespace), permit):
            await self._parts.topics_handler.serve(request, namespace, self)

    @contextmanager
    def _left_unanswered(self, where: str, permit: LookupPermit) -> Iterator[None]:
        """As shipped, some requests are never answered, and keep their place."""
        try:
            yield
        except UnansweredRequestError as error:
            permit.leak()
            self._parts.unanswered.left(where, self.peer, str(error))

    def _namespace_of(
        self, request: pb.CommandGetTopicsOfNamespace | pb.CommandWatchTopicList
    ) -> NamespaceName | None:
        """Return a request's namespace; a malformed one is answered, or as shipped closes."""
        as_shipped = self._parts.as_shipped
        try:
            if as_shipped:
                return NamespaceName.parse_with_slashes(request.namespace)
            return NamespaceName.parse(request.namespace)
        except InvalidNameError as error:
            if as_shipped:
                raise RemoteProtocolError(str(error)) from None
            text = f"{error}; expected tenant/namespace"
            self.send(error_command(request.request_id, pb.InvalidTopicName, text))
            return None

    # -- watches ------------------------------------------------------------------------------

    def handle_watch_topic_list(self, command: pb.BaseCommand) -> None:
        """Start a WATCH_TOPIC_LIST; as shipped, a malformed namespace closes."""
        request = with_body(command, "watchTopicList").watchTopicList
        namespace = self._namespace_of(request)
        if namespace is None:
            return
        watches = self._parts.watches
        mode = pb.CommandGetTopicsOfNamespace.PERSISTENT
        expected_bytes = self._parts.topics_handler.expected_bytes(namespace, mode)
        permit = self._lookup_permit(request.request_id, error_command, expected_bytes)
        if permit is None:
            return
        self.turn_ended = True  # Its pattern is compiled here.
        try:
            # In this turn, so that a close that comes right behind it finds the watch.
            asked = watches.ask(request, namespace, self)
        except RequestError as error:
            with permit:
                self.send(error_command(request.request_id, error.server_error, error.message))
        else:
            self._run(request.request_id, permit, error_command, lambda _: watches.answer(asked))

    def handle_watch_topic_list_close(self, command: pb.BaseCommand) -> None:
        """End a watch; that always succeeds."""
        request = with_body(command, "watchTopicListClose").watchTopicListClose
        self._parts.watches.close(request.watcher_id, self)
        success = pb.CommandSuccess(request_id=request.request_id)
        self.send(pb.BaseCommand(type=Type.SUCCESS, success=success))

    def _start(
        self,
        request_id: int,
        failed: Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand],
        work: Callable[[LookupPermit], Coroutine[object, object, None]],
        expected_bytes: int | None = 0,
    ) -> None:
        """Run a request under a lookup permit; a full house refuses it at once."""
        permit = self._lookup_permit(request_id, failed, expected_bytes)
        if permit is not None:
            self._run(request_id, permit, failed, work)

    def _lookup_permit(
        self,
        request_id: int,
        failed: Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand],
        expected_bytes: int | None,
    ) -> LookupPermit | None:
        """Return a lookup permit; None when the request was refused for want of one.

        Its answer counts against the connection's budget until it is queued.
        """
        reservation = self.responses.reserve(expected_bytes)
        permit = self._parts.lookups.try_acquire(self, reservation)
        if permit is None:
            self.send(failed(request_id, pb.TooManyRequests, TOO_MANY_LOOKUPS))
        return permit

    def _run(
        self,
        request_id: int,
        permit: LookupPermit,
        failed: Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand],
        work: Callable[[LookupPermit], Coroutine[object, object, None]],
    ) -> None:
        under_permit = partial(self._under_permit, request_id, permit, failed, work)
        self._requests.start(request_id, under_permit)

    async def _under_permit(
        self,
        request_id: int,
        permit: LookupPermit,
        failed: Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand],
        work: Callable[[LookupPermit], Coroutine[object, object, None]],
    ) -> None:
        with permit:
            try:
                await work(permit)
            except RequestError as error:
                self.send(failed(request_id, error.server_error, error.message))

    def _answer_unexpected(self, request_id: int, text: str) -> None:
        self.send(error_command(request_id, pb.UnknownError, text))


TRANSITIONS: dict[
    ServerCnxState, dict[pb.BaseCommand.Type.ValueType, Callable[[ServerCnx, pb.BaseCommand], None]]
] = {
    ServerCnxState.START: {
        Type.CONNECT: ServerCnx.handle_connect,
        Type.PING: ServerCnx.handle_ping,
        Type.PONG: ServerCnx.handle_pong,
    },
    ServerCnxState.CONNECTED: {
        Type.PING: ServerCnx.handle_ping,
        Type.PONG: ServerCnx.handle_pong,
        Type.LOOKUP: ServerCnx.handle_lookup,
        Type.PARTITIONED_METADATA: ServerCnx.handle_partitioned_metadata,
        Type.GET_TOPICS_OF_NAMESPACE: ServerCnx.handle_get_topics,
        Type.WATCH_TOPIC_LIST: ServerCnx.handle_watch_topic_list,
        Type.WATCH_TOPIC_LIST_CLOSE: ServerCnx.handle_watch_topic_list_close,
    },
    ServerCnxState.FAILED: {},
}
"""The commands that are legal in each state. A second CONNECT is not: it closes, as recorded."""


_REQUESTS = (
    Type.PRODUCER,
    Type.SUBSCRIBE,
    Type.UNSUBSCRIBE,
    Type.SEEK,
    Type.CLOSE_PRODUCER,
    Type.CLOSE_CONSUMER,
    Type.GET_LAST_MESSAGE_ID,
    Type.CONSUMER_STATS,
    Type.GET_SCHEMA,
    Type.GET_OR_CREATE_SCHEMA,
    Type.NEW_TXN,
    Type.TC_CLIENT_CONNECT_REQUEST,
)
"""Requests of clients that this version answers with an error instead of closing."""
