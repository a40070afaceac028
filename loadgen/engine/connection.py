"""A client's connection, which matches answers to requests and reads at a limited speed.

Reading is paused and resumed by an exact token budget, and a read never exceeds the budget, so the
server meets a reader of exactly that speed. Sockets and virtual time share the class and differ in
the transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

import proto.PulsarApi_pb2 as pb
from client.discovery.schedule import Unanswered
from loadgen.engine.answer_stream import AnswerStream, Listing
from loadgen.engine.connecting import ConnectFailedError
from loadgen.engine.frames import PONG, auth_frame, connect_frame
from loadgen.engine.pacing import ReadBudget
from loadgen.engine.rows import Failed, refusal_reason
from loadgen.errors import UsageError
from proto.commands import NO_REQUEST
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    from client.discovery.topics_pattern import TopicsPattern
    from limiter.clock import TimerHandle
    from loadgen.engine.answers import AnswerBody
    from loadgen.engine.context import TaskContext
    from loadgen.engine.rows import RequestRow
    from loadgen.plan.clients import ClientPlan

OnPushed = Callable[[pb.BaseCommand, bytes], None]

Type = pb.BaseCommand
_ANSWERS = {
    Type.LOOKUP_RESPONSE: "lookupTopicResponse",
    Type.WATCH_TOPIC_LIST_SUCCESS: "watchTopicListSuccess",
    Type.SUCCESS: "success",
    Type.PRODUCER_SUCCESS: "producer_success",
    Type.SEND_RECEIPT: "send_receipt",
    Type.SEND_ERROR: "send_error",
    Type.ERROR: "error",
}
"""Commands that answer a request, and the field of each."""
_REFUSING = (Type.LOOKUP_RESPONSE, Type.SEND_ERROR, Type.ERROR)
"""Answering commands with an error field."""


class BrokerAddress(NamedTuple):
    """The address of the broker that serves a topic, taken from a lookup's answer.

    Attributes:
        url: ``pulsar://host:port``.
        through_proxy: Whether the client connects through a tunnel of the service URL's proxy.
    """

    url: str
    through_proxy: bool

    @property
    def netloc(self) -> str:
        """The broker's ``host:port``."""
        return urlsplit(self.url).netloc


class Selection(NamedTuple):
    """The names that a list request asks for, and those among them that the caller wants.

    Attributes:
        key: Pattern and properties of the request; empty for all names.
        asked_hash: The topics hash that the request contains.
        names_wanted: The largest number of names to return; further names are only counted.
        matching: Selects the names to return, because a broker may leave that to the client.
    """

    key: str = ""
    asked_hash: str | None = None
    names_wanted: int = 0
    matching: TopicsPattern | None = None


class Waiting(NamedTuple):
    """A request under way: the future of its answer, its row, and the names that it asks for."""

    answer: asyncio.Future[Any]
    row: RequestRow
    selection: Selection


EVERYTHING = Selection()


class LoadConnection(asyncio.BufferedProtocol):
    """A simulated client's connection to a server.

    Mutable state: the transport, the requests under way, and the reading speed.

    Bound: the requests that the client has under way.

    Args:
        plan: The client's plan; answers are compared with the plan's namespace.
        context: The state that the clients of the task share.
        on_ended: Called once after the handshake, with the reason why the connection ended.
        on_pushed: Called with a command that answers no request, and its payload.
        tunnel_to: ``host:port`` of the broker at the end of a proxy's tunnel.

    Attributes:
        handshake: Future of the server's version, which CONNECTED contains.
        features: The server's features, after the handshake.
        budget: The budget of bytes that may be read now; None: reading is not limited.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: TaskContext,
        on_ended: Callable[[LoadConnection, str], None],
        on_pushed: OnPushed,
        tunnel_to: str | None = None,
    ) -> None:
        self.plan = plan
        self.context = context
        self.handshake: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.features = pb.FeatureFlags()
        self.budget: ReadBudget | None = None
        if plan.group.read.rate:
            self.budget = ReadBudget(plan.group.read.rate, context.time.monotonic())
        self._on_ended = on_ended
        self._on_pushed = on_pushed
        self._connect_frame = connect_frame(tunnel_to, context.authentication)
        self._stream = AnswerStream(self.new_body)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, Waiting] = {}
        self._closed = self._stalled = False
        self._resume: TimerHandle | None = None

    # -- requests -----------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """True if a request can be sent on the connection now."""
        return not self._closed and self.handshake.done() and self._open is not None

    @property
    def _open(self) -> asyncio.Transport | None:
        """The transport of the connection; None if it is closing or not yet connected."""
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport

    def send(self, frame: bytes) -> None:
        """Write a frame, unless the connection is closing."""
        if (transport := self._open) is not None:
            transport.write(frame)

    def request(
        self, request_id: int, frame: bytes, row: RequestRow, selection: Selection = EVERYTHING
    ) -> asyncio.Future[Any]:
        """Send a request; the future's result is the answer, or a :class:`Failed`.

        The row records the moment of the answer's first byte, and the answer's size.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = Waiting(answer, row, selection)
        self.send(frame)
        return answer

    def forget(self, request_id: int) -> None:
        """Stop waiting for the answer to a request with the given id."""
        self._waiting.pop(request_id, None)

    # -- reading ------------------------------------------------------------------------------

    def stall(self, stalled: bool) -> None:
        """Stop reading from the connection, or resume reading."""
        self._stalled = stalled
        self.context.unread.forget(self)
        if stalled and (transport := self._open) is not None:
            transport.pause_reading()
            if (its_socket := transport.get_extra_info("socket")) is not None:
                closed = partial(self.drop, "closed by the server")
                self.context.unread.watch(self, its_socket, closed)
        self._read_on()

    def _pace(self, budget: ReadBudget) -> None:
        pause_seconds = budget.pause_seconds(self.context.time.monotonic())
        if pause_seconds > 0 and (transport := self._open) is not None:
            transport.pause_reading()
            clock = self.context.clock
            self._resume = clock.call_at(clock.now() + pause_seconds, self._read_on)

    def _read_on(self) -> None:
        if not self._stalled and (transport := self._open) is not None:
            transport.resume_reading()

    # -- called by the transport --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT as soon as the transport is connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._connect_frame)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return a buffer for the bytes that may be read now, whatever size the loop suggests."""
        if self.budget is None:
            return self.context.scratch
        allowed = self.budget.available_bytes(self.context.time.monotonic())
        return self.context.scratch[: max(1, allowed)]

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes just read into the buffer.

        If the budget is used up, reading is paused.
        """
        self.received(self.context.scratch[:nbytes])
        if self.budget is not None:
            self.budget.tokens -= nbytes
            self._pace(self.budget)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, failing all requests under way."""
        self._over("closed by the server" if exc is None else f"connection lost: {exc}")

    @property
    def bytes_wanted(self) -> int:
        """The number of received bytes from which on it is worthwhile to wake the reader."""
        return self._stream.wanted

    def received(self, chunk: memoryview) -> None:
        """Parse bytes just read; the caller may overwrite the buffer afterwards."""
        if self._closed:
            return
        if self.handshake.done():
            self.context.totals.bytes += len(chunk)
        try:
            for each in self._stream.feed(chunk):
                self.receive(*each)
        except RemoteProtocolError as error:
            self.drop(f"protocol error: {error}")

    def new_body(self, request_id: int) -> AnswerBody:
        """Return the object that collects the bytes of a listing that has begun to arrive."""
        waiting, selection = self._waiting.get(request_id), EVERYTHING
        if waiting is not None:
            selection = waiting.selection
            waiting.row.first_byte = self.context.time.seconds()
        return self.context.checker.body(self.plan.namespace, selection.key, selection.asked_hash)

    # -- frames that arrive -------------------------------------------------------------------

    def receive(self, received: Listing | pb.BaseCommand, payload: bytes = b"") -> None:
        """Process a complete listing or command, as the answer to a request if it is one."""
        if isinstance(received, Listing):
            self._listed(*received)
        elif received.type == Type.PING:
            self.send(PONG)
        elif received.type == Type.AUTH_CHALLENGE:
            self._show_again()
        elif not self.handshake.done():
            self._shake_hands(received)
        elif received.type in _ANSWERS:
            self._answered(received)
        else:
            self._on_pushed(received, payload)

    def _listed(self, request_id: int, body: AnswerBody) -> None:
        waiting = self._waiting.get(request_id)
        if waiting is None or waiting.answer.done():  # No waiter, or the request timed out.
            return
        waiting.row.answer, waiting.row.bytes = self.context.checker.submit(body), body.size_bytes
        wanted = waiting.selection
        waiting.answer.set_result(body.told(wanted.names_wanted, wanted.matching))

    def _answered(self, command: pb.BaseCommand) -> None:
        answer: Any = getattr(command, _ANSWERS[command.type])
        # Sequence ids of messages are the negative keys.
        by_sequence = command.type in (Type.SEND_RECEIPT, Type.SEND_ERROR)
        number = -answer.sequence_id if by_sequence else answer.request_id
        # A refusal without a request id ends all requests under way.
        ended = [*self._waiting] if number == NO_REQUEST else [number]
        size_bytes = command.ByteSize()
        # Only a lookup can fail without an error code.
        if command.type in _REFUSING and (
            answer.HasField("error") or answer.response == pb.CommandLookupTopicResponse.Failed
        ):
            reason = refusal_reason(answer.error, answer.message)
            answer, size_bytes = Failed(answer.error, reason), 0
        for waiting in filter(None, map(self._waiting.get, ended)):
            if not waiting.answer.done():
                waiting.row.bytes = size_bytes
                waiting.answer.set_result(answer)

    def _show_again(self) -> None:
        if self.context.authentication is None:
            self.drop("the server asks for credentials: name some with --auth-params")
            return
        try:
            self.send(auth_frame(self.context.authentication))
        except UsageError as error:
            self.drop(str(error))

    def _shake_hands(self, received: pb.BaseCommand) -> None:
        if received.type == Type.CONNECTED:
            self.context.totals.connected += 1
            self.features = received.connected.feature_flags
            self.handshake.set_result(received.connected.server_version)
        elif received.type == Type.ERROR:
            self.drop(refusal_reason(received.error.error, received.error.message))
        else:
            self.drop(f"the server answered CONNECT with {Type.Type.Name(received.type)}")

    # -- the end ------------------------------------------------------------------------------

    def drop(self, reason: str) -> None:
        """Close the connection; the requests under way fail with ``reason``."""
        self._over(reason)
        self.close()

    def close(self) -> None:
        """Close the connection immediately, without calling any callback."""
        self._closed = True
        self._read_no_more()
        if self._transport is not None:
            self._transport.abort()

    def _read_no_more(self) -> None:
        self.context.unread.forget(self)
        if self._resume is not None:
            self._resume.cancel()

    def _over(self, reason: str) -> None:
        self._read_no_more()
        if self._closed:
            return
        self._closed = True
        if not self.handshake.done():
            self.handshake.set_exception(ConnectFailedError(reason))
            return
        self._on_ended(self, reason)
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_result(Failed(Unanswered.DISCONNECTED, reason))
