"""One connection of a client: shakes hands, answers requests, reads at its own speed.

Reading is paused and resumed by an exact token budget and never takes more at once than the budget
holds, so that the server meets a reader of exactly that speed. Over sockets and in virtual time it
is the same class; what differs is its transport.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from client.discovery.actions import Unanswered
from loadgen.engine.answer_stream import AnswerStream, Listing
from loadgen.engine.answers import ending, first_names
from loadgen.engine.connecting import ConnectFailedError
from loadgen.engine.credentials import auth_response
from loadgen.engine.frames import (
    CLIENT_VERSION,
    PONG,
    PROTOCOL_VERSION,
    MessageStream,
    connect_frame,
)
from loadgen.engine.pacing import ReadBudget
from loadgen.engine.refusals import refusal_reason
from loadgen.errors import UsageError
from proto.commands import NO_REQUEST
from proto.errors import RemoteProtocolError
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.discovery.actions import Failure
    from client.discovery.topics_pattern import TopicsPattern
    from limiter.clock import TimerHandle
    from loadgen.engine.answers import AnswerBody
    from loadgen.engine.context import TaskContext
    from loadgen.plan.clients import ClientPlan
    from loadgen.plan.group import Reader

Type = pb.BaseCommand


class BrokerAddress(NamedTuple):
    """The broker that serves a topic, as a lookup named it.

    Attributes:
        url: ``pulsar://host:port``.
        through_proxy: Whether the service URL leads to a proxy, which is asked for a tunnel.
    """

    url: str
    through_proxy: bool

    @property
    def netloc(self) -> str:
        """``host:port``."""
        return urlsplit(self.url).netloc


class Selection(NamedTuple):
    """Which names of a listing are wanted.

    Attributes:
        key: What the server was asked to choose: pattern and properties; empty for all names.
        asked_hash: The hash that the request had.
        names_wanted: So many names of the answer are told; the others are only counted.
        matching: Only names that match are told: a broker may leave that to the client.
    """

    key: str = ""
    asked_hash: str | None = None
    names_wanted: int = 0
    matching: TopicsPattern | None = None


class Listed(NamedTuple):
    """A listing that has arrived whole.

    Attributes:
        topics_hash: As the server says; None where it says none.
        changed: False where the hash that was asked with is still right.
        names: The first of its names, as many as were wanted.
        body: To be verified when the run is over.
    """

    topics_hash: str | None
    changed: bool
    names: Sequence[str]
    body: AnswerBody


class Failed(NamedTuple):
    """Why a request has no answer.

    Attributes:
        failure: The server's error code, or that there was none.
        reason: In words, masked so that reasons can be counted.
    """

    failure: Failure
    reason: str


class LoadConnection(asyncio.BufferedProtocol):
    """A connection. Its mutable state: the transport, what is under way, how it reads.

    Bound: as many requests under way as its client sends.

    Args:
        plan: The client's; what is known of its namespace is known of its answers.
        context: The task's.
        on_ended: Told once, behind the handshake, why the connection is over.
        on_pushed: Told of commands that answer nothing.
        tunnel_to: ``host:port`` of the broker that a proxy is asked to pass everything on to.

    Attributes:
        handshake: Its result is what the server calls its version.
        features: What the server offers, once it has shaken hands.
        on_message: Takes messages; set before it connects, by those that consume.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: TaskContext,
        on_ended: Callable[[LoadConnection, str], None],
        on_pushed: Callable[[pb.BaseCommand], None],
        tunnel_to: str | None = None,
    ) -> None:
        self.plan = plan
        self.context = context
        self.handshake: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.features = pb.FeatureFlags()
        self._on_ended = on_ended
        self._on_pushed = on_pushed
        self._connect_frame = connect_frame(tunnel_to, context.authentication)
        self._stream = AnswerStream(self.new_body)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._selections: dict[int, Selection] = {}
        self._first_bytes: dict[int, float] = {}
        self._closed = self._stalled = False
        self._budget: ReadBudget | None = None
        self._resume: TimerHandle | None = None
        if plan.group.read.rate:
            self._budget = ReadBudget(plan.group.read.rate, context.time.monotonic())

    @property
    def reader(self) -> Reader:
        """How its client reads."""
        return self.plan.group.read

    def takes_messages(self, on_message: Callable[[pb.CommandMessage, bytes], None]) -> None:
        """Read frames with payloads too; before it connects."""
        # It yields commands as the stream of answers does.
        self._stream = cast("AnswerStream", MessageStream(on_message))

    # -- requests -----------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """True if a request can be sent."""
        if self._closed or self._transport is None or not self.handshake.done():
            return False
        return not self._transport.is_closing()

    def send(self, frame: bytes) -> None:
        """Write a frame, unless the connection is closing."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def request(
        self, request_id: int, frame: bytes, selection: Selection | None = None
    ) -> asyncio.Future[Any]:
        """Send a request; the result is its answer, or a Failed."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        if selection is not None:
            self._selections[request_id] = selection
        self.send(frame)
        return answer

    def forget(self, request_id: int) -> float | None:
        """Wait for an answer no longer; return when its first byte came."""
        self._waiting.pop(request_id, None)
        self._selections.pop(request_id, None)
        return self._first_bytes.pop(request_id, None)

    def close(self) -> None:
        """Close the connection at once, and tell nobody."""
        self._closed = True
        if self._resume is not None:
            self._resume.cancel()
        if self._transport is not None:
            self._transport.abort()

    # -- reading ------------------------------------------------------------------------------

    def stall(self) -> None:
        """Read nothing until :meth:`go_on`."""
        self._stalled = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        self._stalled = False
        self._resume_reading()

    @property
    def budget(self) -> ReadBudget | None:
        """Bytes that it may read now; None: everything."""
        return self._budget

    def _pace(self) -> None:
        if self._budget is None or self._transport is None or self._closed:
            return
        pause_seconds = self._budget.pause_seconds(self.context.time.monotonic())
        if pause_seconds > 0:
            self._transport.pause_reading()
            clock = self.context.clock
            self._resume = clock.call_at(clock.now() + pause_seconds, self._resume_reading)

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._stalled and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- called by the transport --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._connect_frame)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return room for no more than may be read now."""
        del sizehint  # the loop's wish; the budget decides
        if self._budget is None:
            return self.context.scratch
        allowed = self._budget.available_bytes(self.context.time.monotonic())
        return self.context.scratch[: max(1, allowed)]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that were read."""
        if self._closed:
            return
        if self._budget is not None:
            self._budget.spend(nbytes)
        self.bytes_received(nbytes)
        try:
            for received in self._stream.feed(self.context.scratch[:nbytes]):
                self.receive(received)
        except RemoteProtocolError as error:
            self._break_off(f"protocol error: {error}")
            return
        self.between_frames()
        self._pace()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, with what was under way on it."""
        self._over("closed by the server" if exc is None else f"connection lost: {exc}")

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read, before they are looked at."""
        if self.handshake.done():
            self.context.totals.bytes += nbytes

    def between_frames(self) -> None:
        """Take note that the bytes read so far were looked at."""

    def new_body(self, request_id: int) -> AnswerBody:
        """Return the place for a listing that has begun to arrive."""
        self._first_bytes[request_id] = self.context.time.seconds()
        selection = self._selections.get(request_id, _UNASKED)
        namespace = self.plan.namespace
        return self.context.checker.body(namespace, selection.key, selection.asked_hash)

    # -- frames that arrive -------------------------------------------------------------------

    def receive(self, received: Listing | pb.BaseCommand) -> None:
        """Take a frame that has arrived."""
        if isinstance(received, Listing):
            if self.handshake.done():
                self._listed(received)
        elif received.type == Type.PING:
            self.send(PONG)
        elif received.type == Type.ERROR:
            self._refused(received.error)
        elif received.type == Type.AUTH_CHALLENGE:
            self._show_again()
        elif not self.handshake.done():
            self._shake_hands(received)
        elif received.type in _ANSWERS:
            request_id, answer = _ANSWERS[received.type](self, received)
            self._answer(request_id, answer)
        else:
            self._on_pushed(received)

    def _answer(self, request_id: int, answer: object) -> None:
        waiting = self._waiting.get(request_id)
        if waiting is not None and not waiting.done():  # Else nobody asked, or its time was up.
            waiting.set_result(answer)

    def _listed(self, listing: Listing) -> None:
        selection = self._selections.get(listing.request_id)
        if selection is None:
            return
        body = self.context.checker.submit(listing.body)
        try:
            names = first_names(body, selection.names_wanted, selection.matching)
            topics_hash, changed = ending(body)
        except DecodeError:
            raise RemoteProtocolError("an answer is no list of topics") from None
        self._answer(listing.request_id, Listed(topics_hash, changed, names, body))

    def _looked_up(self, command: pb.BaseCommand) -> tuple[int, object]:
        found = command.lookupTopicResponse
        if found.response == pb.CommandLookupTopicResponse.Failed:
            failed = Failed(found.error, refusal_reason(found.error, found.message))
            return found.request_id, failed
        tls = self.context.service_url.startswith("pulsar+ssl:")
        url = found.brokerServiceUrlTls if tls else found.brokerServiceUrl
        return found.request_id, BrokerAddress(url, found.proxy_through_service_url)

    def _refused(self, error: pb.CommandError) -> None:
        failed = Failed(error.error, refusal_reason(error.error, error.message))
        if not self.handshake.done():
            self._break_off(failed.reason)
            return
        # A refusal that names no request ends all that were sent.
        named = error.request_id != NO_REQUEST
        for request_id in [error.request_id] if named else list(self._waiting):
            self._answer(request_id, failed)

    def _send_error(self, command: pb.BaseCommand) -> tuple[int, object]:
        error = command.send_error
        failed = Failed(error.error, refusal_reason(error.error, error.message))
        return -error.sequence_id, failed

    def _show_again(self) -> None:
        if self.context.authentication is None:
            self._break_off("the server asks for credentials: name some with --auth-params")
            return
        try:
            response = auth_response(CLIENT_VERSION, PROTOCOL_VERSION, self.context.authentication)
            self.send(encode_command(response))
        except UsageError as error:
            self._break_off(str(error))

    def _shake_hands(self, received: pb.BaseCommand) -> None:
        if received.type != Type.CONNECTED:
            name = Type.Type.Name(received.type)
            self._break_off(f"the server answered CONNECT with {name}")
            return
        self.context.totals.connected += 1
        self.features = received.connected.feature_flags
        self.handshake.set_result(received.connected.server_version)

    # -- the end ------------------------------------------------------------------------------

    def _break_off(self, reason: str) -> None:
        self._over(reason)
        self.close()

    def _over(self, reason: str) -> None:
        if self._resume is not None:
            self._resume.cancel()
        if self._closed:
            return
        self._closed = True
        if not self.handshake.done():
            self.handshake.set_exception(ConnectFailedError(reason))
            return
        self._on_ended(self, reason)
        for request_id in list(self._waiting):
            self._answer(request_id, Failed(Unanswered.DISCONNECTED, reason))


_UNASKED = Selection()
_ANSWERS: dict[int, Callable[[LoadConnection, pb.BaseCommand], tuple[int, object]]] = {
    Type.LOOKUP_RESPONSE: LoadConnection._looked_up,
    Type.WATCH_TOPIC_LIST_SUCCESS: lambda _, each: (
        each.watchTopicListSuccess.request_id,
        each.watchTopicListSuccess,
    ),
    Type.SUCCESS: lambda _, each: (each.success.request_id, each.success),
    Type.PRODUCER_SUCCESS: lambda _, each: (
        each.producer_success.request_id,
        each.producer_success,
    ),
    # Messages have numbers of their own: the negative ones.
    Type.SEND_RECEIPT: lambda _, each: (-each.send_receipt.sequence_id, each.send_receipt),
    Type.SEND_ERROR: LoadConnection._send_error,
}
