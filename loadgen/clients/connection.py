"""One client's connection: shakes hands, takes answers apart, reads at its own speed.

Subclasses decide what is asked for and when. Reading is paused and resumed by an exact token
budget and never takes more at once than the budget holds, so that the server meets a reader of
exactly that speed.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import proto.PulsarApi_pb2 as pb
from loadgen.clients.answer_stream import AnswerStream, Listing
from loadgen.clients.credentials import auth_response, show_credentials
from loadgen.clients.refusals import refusal_reason
from loadgen.errors import UsageError
from proto.errors import RemoteProtocolError
from proto.frames import encode_command

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication
    from limiter.clock import TimerHandle
    from loadgen.clients.answers import AnswerBody
    from loadgen.clients.context import ClientContext
    from loadgen.clients.pacing import ReadBudget
    from loadgen.scenario import ClientPlan


PROTOCOL_VERSION = 20
CLIENT_VERSION = "floodgate-loadgen"
PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))


def connect_frame(
    tunnel_to: str | None = None,
    *,
    watches: bool = False,
    authentication: Authentication | None = None,
) -> bytes:
    """Return CONNECT.

    Args:
        tunnel_to: ``host:port`` of a broker that a proxy is to pass everything on to.
        watches: Whether the client knows topic list watches.
        authentication: The credentials to show.

    Raises:
        UsageError: They cannot be read.
    """
    if authentication is None:
        return _plain_connect(tunnel_to, watches=watches)
    connect = _connect(tunnel_to, watches=watches)
    show_credentials(connect, authentication)
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))


@lru_cache(maxsize=16)
def _plain_connect(tunnel_to: str | None, *, watches: bool) -> bytes:
    connect = _connect(tunnel_to, watches=watches)
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))


def _connect(tunnel_to: str | None, *, watches: bool) -> pb.CommandConnect:
    connect = pb.CommandConnect(
        client_version=CLIENT_VERSION,
        protocol_version=PROTOCOL_VERSION,
        auth_method_name="none",
        proxy_to_broker_url=tunnel_to,
    )
    if watches:
        connect.feature_flags.supports_topic_watchers = True
    return connect


@lru_cache(maxsize=1024)
def request_frame(namespace: str, pattern: str | None, request_id: int) -> bytes:
    """Return GET_TOPICS_OF_NAMESPACE for persistent topics."""
    return encode_command(
        pb.BaseCommand(
            type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE,
            getTopicsOfNamespace=pb.CommandGetTopicsOfNamespace(
                request_id=request_id,
                namespace=namespace,
                mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
                topics_pattern=pattern,
            ),
        )
    )


def lookup_frame(topic: str, request_id: int) -> bytes:
    """Return a LOOKUP."""
    lookup = pb.CommandLookupTopic(topic=topic, request_id=request_id, authoritative=False)
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup))


class ConnectFailedError(Exception):
    """A client did not get as far as CONNECTED; the message says why."""


class ClientConnection(asyncio.BufferedProtocol):
    """One connection. Its mutable state is its transport, its handshake and its read budget."""

    def __init__(self, plan: ClientPlan, context: ClientContext[Any]) -> None:
        self.plan = plan
        # Its result is what the server calls its version.
        self.handshake: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.context = context
        self._stream = AnswerStream(self.new_body)
        self._transport: asyncio.Transport | None = None
        self._budget: ReadBudget | None = None
        self._resume: TimerHandle | None = None
        self._closed = False
        self._connect_frame = connect_frame(authentication=context.authentication)
        self.features = pb.FeatureFlags()  # the server's, once it has shaken hands

    def tunnel_to(self, broker: str | None) -> None:
        """Ask the proxy at the service URL to pass all on to ``host:port``; before it connects."""
        self._connect_frame = connect_frame(broker, authentication=self.context.authentication)

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def send(self, frame: bytes) -> None:
        """Write a frame, unless the connection is closing."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    @property
    def usable(self) -> bool:
        """True if a request can be sent."""
        if self._closed or self._transport is None or not self.handshake.done():
            return False
        return not self._transport.is_closing()

    # Hooks for subclasses; each does nothing here.

    def listing_received(self, listing: Listing) -> None:
        """Take a listing."""

    def command_received(self, command: pb.BaseCommand) -> None:
        """Take any other command that arrives after the handshake."""

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Take a refusal."""

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read, before they are looked at."""

    def ended(self, reason: str) -> None:
        """Take note that the connection is over, once, after its handshake."""

    def between_frames(self) -> None:
        """Take note that the bytes read so far end with a frame."""

    @property
    def budget(self) -> ReadBudget | None:
        """Bytes that it may read now; None: everything."""
        return self._budget

    # Called by the event loop.

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
        if self._stream.idle:
            self.between_frames()
        self._pace()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, with what was under way on it."""
        self._over("closed by the server" if exc is None else f"connection lost: {exc}")

    # Frames that arrive.

    def new_body(self, request_id: int) -> AnswerBody:
        """Return the place for a listing that has begun to arrive."""
        del request_id
        return self.context.checker.body(self.plan.namespace)

    def receive(self, received: Listing | pb.BaseCommand) -> None:
        """Take a frame that has arrived."""
        if isinstance(received, Listing):
            if self.handshake.done():
                self.listing_received(received)
        elif received.type == pb.BaseCommand.PING:
            self.send(PONG)
        elif received.type == pb.BaseCommand.ERROR:
            self._refused(received.error)
        elif received.type == pb.BaseCommand.AUTH_CHALLENGE:
            self._show_again()
        elif self.handshake.done():
            self.command_received(received)
        else:
            self._shake_hands(received)

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
        if received.type != pb.BaseCommand.CONNECTED:
            name = pb.BaseCommand.Type.Name(received.type)
            self._break_off(f"the server answered CONNECT with {name}")
            return
        self.context.counters.connected += 1
        self.features = received.connected.feature_flags
        self.handshake.set_result(received.connected.server_version)

    def _refused(self, error: pb.CommandError) -> None:
        reason = refusal_reason(error.error, error.message)
        if self.handshake.done():
            self.refusal_received(error.request_id, reason)
        else:
            self._break_off(reason)

    # The end.

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
        else:
            self.ended(reason)

    # Reading speed.

    def _pace(self) -> None:
        if self._budget is None or self._transport is None or self._closed:
            return
        pause_seconds = self._budget.pause_seconds(self.context.time.monotonic())
        if pause_seconds > 0:
            self._transport.pause_reading()
            clock = self.context.clock
            self._resume = clock.call_at(clock.now() + pause_seconds, self._resume_reading)

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
