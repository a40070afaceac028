"""The client's end of a connection to a broker or proxy, with handshake and requests."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached, PendingRequest, PendingRequests
from client.connection.connect_options import ConnectOptions, current_auth_data
from client.connection.errors import (
    AnswerDeclinedError,
    AnswerTooLargeError,
    DisconnectedError,
    RequestTimeoutError,
    RequestTooLargeError,
    TlsError,
    TooManyPendingRequestsError,
)
from client.exceptions import ConnectError, PulsarException, server_response_error
from limiter.clock import Clock, LoopClock, deadline
from proto.errors import FrameTooLargeError, RemoteProtocolError
from proto.frames import (
    DEFAULT_MAX_MESSAGE_BYTES,
    FRAME_PADDING_BYTES,
    HEAD_BYTES,
    encode_command,
)
from proto.parsing.command_bounds import COMMAND_BYTES
from proto.topics_response import TopicsAnswer, read_topics_head
from proto.transport.connection import Connection
from proto.transport.keep_alive import CLOSING, KeepAlive, PeerState, Verdict
from proto.transport.turn_writer import TurnWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.connect_options import Credentials
    from limiter.clock import TimerHandle
    from proto.frames import Frame
    from proto.transport.tls import TlsLayer

logger = logging.getLogger(__name__)

LARGEST_MESSAGE_BYTES = 2_147_473_407
"""Largest maxMessageSize that a broker can have (upstream: a Java int, less the padding)."""


class ClientCnxState(Enum):
    """The stages of a connection's life (upstream: ClientCnx.State)."""

    NONE = "not connected"
    SENT_CONNECT_FRAME = "handshake"
    READY = "ready"
    FAILED = "failed"


class ClientCnx(Connection):
    """A connection of the client to a broker or proxy.

    Args:
        options: Connection options.
        clock: The source of time.
        tls: TLS layer above the plain transport, or None.
        target: The broker behind a proxy, as ``host:port``; None without a proxy.
        auth_data: The credentials for CONNECT.

    Attributes:
        attached: The producers, consumers and watches that use the connection.
        turn_writer: Collects messages and acknowledgements until the end of the event-loop
            iteration.
        exclusive_turns: Futures of producers waiting for exclusive access, by request id.

    Source: upstream ClientCnx.
    """

    # With the base's, too many attributes for Python's shared key tables.
    __slots__ = (
        "_auth_data", "_clock", "_frame_limit_bytes", "_keep_alive", "_keep_alive_timer",
        "_options", "_pending", "_progress_at", "_ready", "_showing", "_target", "attached",
        "exclusive_turns", "on_lost", "server", "state", "turn_writer",
    )  # fmt: skip

    def __init__(
        self,
        options: ConnectOptions | None = None,
        clock: Clock | None = None,
        tls: TlsLayer | None = None,
        target: str | None = None,
        auth_data: bytes = b"",
    ) -> None:
        self._options = options or ConnectOptions()
        self._auth_data = auth_data
        self._showing: asyncio.Task[None] | None = None
        drains = self._options.drain_oversized
        super().__init__(LARGEST_MESSAGE_BYTES if drains else DEFAULT_MAX_MESSAGE_BYTES, tls=tls)
        self._target = target
        self.attached = Attached(tls=tls is not None)
        self.turn_writer = TurnWriter(self.enqueue)
        self.exclusive_turns: dict[int, asyncio.Future[pb.CommandProducerSuccess]] = {}
        self._frame_limit_bytes = DEFAULT_MAX_MESSAGE_BYTES + FRAME_PADDING_BYTES
        self._clock: Clock = clock or LoopClock()
        self._pending = PendingRequests()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.state = ClientCnxState.NONE
        self.server: pb.CommandConnected | None = None
        self.on_lost: Callable[[], object] | None = None
        self._progress_at = self._clock.now()
        self._keep_alive = KeepAlive(by_progress=False)
        self._keep_alive_timer: TimerHandle | None = None

    @property
    def max_message_size(self) -> int:
        """Maximum size of a message in bytes, as announced by the server."""
        return self._frame_limit_bytes - FRAME_PADDING_BYTES

    @property
    def last_request_id(self) -> int:
        """The id of the most recent request."""
        return self._pending.next_id - 1

    # -- handshake ----------------------------------------------------------------------------

    def connected(self) -> None:
        """Send CONNECT after the transport, and TLS if used, is established."""
        connect = pb.CommandConnect(
            client_version=self._options.client_version,
            protocol_version=self._options.protocol_version,
            auth_method_name="none",
        )
        if self._target is not None:
            connect.proxy_to_broker_url = self._target
        credentials = self._options.credentials
        if credentials is not None:
            connect.auth_method_name = credentials.method_name
            connect.auth_data = self._auth_data
        if self._options.proxy_version is not None:
            connect.proxy_version = self._options.proxy_version
        if self._options.original_principal is not None:
            connect.original_principal = self._options.original_principal
        original = self._options.original_credentials
        if original is not None:
            connect.original_auth_method = original.method_name
            connect.original_auth_data = original.auth_data().decode("utf-8", "replace")
        flags = connect.feature_flags
        flags.supports_auth_refresh = flags.supports_topic_watchers = True
        flags.supports_partial_producer = True
        self.state = ClientCnxState.SENT_CONNECT_FRAME
        self.send(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
        self._arm_keep_alive()

    def tls_failed(self, error: RemoteProtocolError) -> None:
        """Raise a TlsError in the callers that wait for the handshake."""
        self._fail(TlsError(f"{self.peer}: {error}"))

    async def ready(self) -> None:
        """Wait until the handshake with the server has ended.

        Raises:
            ConnectError: The server refused, or did not answer in time.
        """
        try:
            async with deadline(self._clock, self._options.operation_timeout_seconds):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self.abort()
            raise ConnectError(f"{self.peer} did not answer the handshake") from None

    def _accept(self, connected: pb.CommandConnected) -> None:
        self.state = ClientCnxState.READY
        self.server = connected
        if connected.HasField("max_message_size"):
            self._frame_limit_bytes = connected.max_message_size + FRAME_PADDING_BYTES
        if not self._options.drain_oversized:
            self.decoder.max_message_bytes = self._frame_limit_bytes - FRAME_PADDING_BYTES
        if not self._ready.done():
            self._ready.set_result(None)

    def _fail(self, reason: PulsarException) -> None:
        self.state = ClientCnxState.FAILED
        if not self._ready.done():
            self._ready.set_exception(reason)
            self._ready.exception()

    # -- keep-alive ---------------------------------------------------------------------------

    def _arm_keep_alive(self) -> None:
        seconds = self._options.keep_alive_seconds
        if seconds > 0:
            due = self._clock.now() + seconds
            self._keep_alive_timer = self._clock.call_at(due, self._keep_alive_tick)

    def _keep_alive_tick(self) -> None:
        """Close the connection if the server sent nothing for too long, or send the next ping.

        Differs: upstream counts only complete commands as activity, and would disconnect while
        a large response is being received slowly.
        """
        self._arm_keep_alive()
        ready = self.state is ClientCnxState.READY
        verdict = self._keep_alive.tick(PeerState(ready, self.paused, self.chunks_received))
        if verdict is Verdict.SEND_PING:
            self.send(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
        elif verdict in CLOSING:
            logger.warning("closing %s: %s", self.peer, verdict.value)
            self.abort()

    # -- requests -----------------------------------------------------------------------------

    async def request(self, build: Callable[[int], pb.BaseCommand]) -> pb.BaseCommand:
        """Send a request to the server, and return its response.

        Args:
            build: Function that builds the command for a given request id.

        Raises:
            ServerResponseError: The server answered with ERROR.
            DisconnectedError: The connection ended first.
            RequestTimeoutError: No answer in time.
            TooManyPendingRequestsError: Too many requests are unanswered.
            RequestTooLargeError: The request exceeds the server's limit.
        """
        answer = await self._request(build, PendingRequest(None, raw=False))
        if isinstance(answer, TopicsAnswer):
            raise RemoteProtocolError("the server sent a topic list in answer to another request")
        return answer

    async def topics_raw(
        self, request: pb.CommandGetTopicsOfNamespace, admit: Callable[[int], bool] | None = None
    ) -> TopicsAnswer:
        """Request a topic list, and return the response without decoding it.

        Args:
            request: The request; its request id is replaced by a new one.
            admit: Function called with the announced size of a large response before its body is
                read. If it returns False, the body is discarded and AnswerDeclinedError is raised.

        Raises:
            AnswerDeclinedError: ``admit`` returned false.
            The errors of :meth:`request`.
        """

        def build(request_id: int) -> pb.BaseCommand:
            command = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE)
            command.getTopicsOfNamespace.CopyFrom(request)
            command.getTopicsOfNamespace.request_id = request_id
            return command

        answer = await self._request(build, PendingRequest(admit, raw=True))
        if not isinstance(answer, TopicsAnswer):
            raise RemoteProtocolError("the answer to a topic-list request is not a topic list")
        return answer

    async def _request(
        self, build: Callable[[int], pb.BaseCommand], pending: PendingRequest
    ) -> pb.BaseCommand | TopicsAnswer:
        if self.closed or self.state is not ClientCnxState.READY:
            raise DisconnectedError(self.peer)
        if len(self._pending) >= self._options.max_pending_requests:
            raise TooManyPendingRequestsError(
                f"{len(self._pending)} requests to {self.peer} are unanswered already"
            )
        request_id = self._pending.add(pending)
        sent_at = self._clock.now()
        try:
            self._send_request(build(request_id))
            async with deadline(self._clock, self._options.operation_timeout_seconds):
                return await pending.answer
        except TimeoutError:
            seconds = self._options.operation_timeout_seconds
            if self._progress_at <= sent_at and self.decoder.within_frame:
                # The peer stopped within an answer: nothing can follow. Users of the shared
                # connection get a new connection.
                logger.warning("closing %s: it stopped within a frame %g s ago", self.peer, seconds)
                self.abort()
            raise RequestTimeoutError(f"{self.peer} did not answer in {seconds:g} s") from None
        finally:
            self._pending.pop(request_id, None)

    def _send_request(self, command: pb.BaseCommand) -> None:
        """Send a request; raise RequestTooLargeError if the server would disconnect for its size.

        The limit leaves room for the frame's padding, because the text of an error response may
        repeat the request. A Floodgate broker has its own limit (proto.parsing.command_bounds).
        """
        data = encode_command(command)
        limit_bytes = min(self._frame_limit_bytes - FRAME_PADDING_BYTES, COMMAND_BYTES)
        if self._options.drain_oversized and len(data) > limit_bytes:
            raise RequestTooLargeError(len(data), limit_bytes)
        self.turn_writer.flush()
        self.enqueue([data], len(data))

    # -- answers ------------------------------------------------------------------------------

    def large_frame_announced(self, total_size: int, head: bytes) -> bool:
        """Return True to read a large response, or False to discard it, as its caller decides."""
        self._progress_at = self._clock.now()
        found = read_topics_head(head)
        if found is None:
            if total_size > self._frame_limit_bytes:
                raise FrameTooLargeError(total_size, self._frame_limit_bytes)
            return True
        pending = self._pending.get(found[0])
        if pending is None:
            return False
        refusal = self._refusal(pending, total_size)
        if refusal is not None:
            pending.fail(refusal)
        return refusal is None

    def _refusal(self, pending: PendingRequest, total_size: int) -> PulsarException | None:
        limit_bytes = self._frame_limit_bytes
        if self._options.answer_limit_bytes is not None:
            limit_bytes = min(limit_bytes, self._options.answer_limit_bytes)
        if total_size > limit_bytes:
            return AnswerTooLargeError(total_size, limit_bytes)
        if pending.admit is not None and not pending.admit(total_size):
            return AnswerDeclinedError(total_size)
        return None

    def frame_received(self, frame: Frame) -> None:
        """Pass a received frame to the request, producer, consumer or watch that it concerns."""
        self._progress_at = self._clock.now()
        found = read_topics_head(frame.start(HEAD_BYTES))
        if found is not None:
            pending = self._pending.get(found[0])
            if pending is not None and pending.raw:
                pending.resolve(TopicsAnswer(frame.total_size, frame.parts, found[1]))
                return
        command = frame.command()
        if not self.attached.receive(command, frame):
            self._command_received(command)

    def _command_received(self, command: pb.BaseCommand) -> None:
        kind = command.type
        if kind == pb.BaseCommand.CONNECTED:
            self._accept(command.connected)
        elif kind == pb.BaseCommand.PING:
            self.send(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
        elif kind == pb.BaseCommand.ERROR:
            self._error_received(command.error)
        elif kind == pb.BaseCommand.PRODUCER_SUCCESS:
            self._producer_success_received(command)
        elif kind == pb.BaseCommand.AUTH_CHALLENGE:
            self._challenge_received(command.authChallenge)
        elif kind in _ANSWERS:
            self._pending.resolve(getattr(command, _ANSWERS[kind]).request_id, command)
        elif kind != pb.BaseCommand.PONG:
            name = pb.BaseCommand.Type.Name(kind)
            raise RemoteProtocolError(f"{name} is not an answer this client asked for")

    def _producer_success_received(self, command: pb.BaseCommand) -> None:
        """Complete the request to create a producer.

        A producer waiting for exclusive access gets a second response once it has access.
        """
        success = command.producer_success
        turn = self.exclusive_turns.pop(success.request_id, None)
        if turn is not None and not turn.done():
            turn.set_result(success)
        elif not success.producer_ready and success.request_id in self._pending:
            loop = asyncio.get_running_loop()
            self.exclusive_turns[success.request_id] = loop.create_future()
        self._pending.resolve(success.request_id, command)

    def _challenge_received(self, challenge: pb.CommandAuthChallenge) -> None:
        """Answer the server's challenge with current credentials, because earlier ones expire.

        Source: upstream ClientCnx.handleAuthChallenge; as in the C++ client, the challenge's text
        is ignored.
        """
        if self._options.original_credentials is not None:
            self._options.original_credentials.give_valid(self._answer_challenge)
            return
        credentials = self._options.credentials
        if credentials is None:
            raise RemoteProtocolError(f"{self.peer} asks for credentials, and there are none")
        if self._showing is None or self._showing.done():  # One answer serves two challenges.
            self._showing = asyncio.get_running_loop().create_task(self._show(credentials))

    async def _show(self, credentials: Credentials) -> None:
        try:
            seconds = self._options.operation_timeout_seconds
            self._answer_challenge(await current_auth_data(credentials, self._clock, seconds))
        except PulsarException as error:
            logger.warning("closing %s, which asks for new credentials: %s", self.peer, error)
            self.abort()

    def _answer_challenge(self, data: bytes) -> None:
        shown = self._options.original_credentials or self._options.credentials
        if self.closed or shown is None:
            return
        answer = pb.CommandAuthResponse(
            client_version=self._options.client_version,
            protocol_version=self._options.protocol_version,
        )
        answer.response.auth_method_name = shown.method_name
        answer.response.auth_data = data
        self.send(pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE, authResponse=answer))

    def _error_received(self, error: pb.CommandError) -> None:
        if self.state is not ClientCnxState.READY:
            failed = server_response_error(error.error, error.message)
            failed.at_handshake = True
            of_credentials = error.error in _CREDENTIALS_REFUSED
            self._fail(failed if of_credentials else ConnectError(str(failed)))
            self.abort()
            return
        refusal = server_response_error(error.error, error.message)
        turn = self.exclusive_turns.pop(error.request_id, None)
        if turn is not None and not turn.done():
            turn.set_exception(refusal)
        self._pending.fail(error.request_id, refusal)

    def lost(self, error: Exception | None) -> None:
        """Fail all pending requests, because the connection is lost."""
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        if self._showing is not None:
            self._showing.cancel()
        reason = f"{self.peer} closed the connection" + (f": {error}" if error else "")
        self._fail(ConnectError(reason))
        for pending in self._pending.values():
            pending.fail(DisconnectedError(self.peer))
        for turn in self.exclusive_turns.values():
            if not turn.done():
                turn.set_exception(DisconnectedError(self.peer))
        self.exclusive_turns.clear()
        self.attached.lost()
        if self.on_lost is not None:
            self.on_lost()


_CREDENTIALS_REFUSED = (pb.AuthenticationError, pb.AuthorizationError)
_ANSWERS: dict[pb.BaseCommand.Type.ValueType, str] = {
    pb.BaseCommand.LOOKUP_RESPONSE: "lookupTopicResponse",
    pb.BaseCommand.PARTITIONED_METADATA_RESPONSE: "partitionMetadataResponse",
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE: "getTopicsOfNamespaceResponse",
    pb.BaseCommand.GET_SCHEMA_RESPONSE: "getSchemaResponse",
    pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE: "getLastMessageIdResponse",
    pb.BaseCommand.CONSUMER_STATS_RESPONSE: "consumerStatsResponse",
    pb.BaseCommand.ACK_RESPONSE: "ackResponse",
    pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS: "watchTopicListSuccess",
    pb.BaseCommand.SUCCESS: "success",
}
"""Commands that answer a request, each with its field that contains the request id."""
