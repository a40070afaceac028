"""Limits on clients' connections: number of connections, handshake deadline, request rate."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol
from weakref import proxy

from limiter.token_bucket import Rate
from server.limits.clients import REQUESTS
from server.limits.connections import Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle
    from proto.frames import FrameDecoder
    from proto.transport.sender import Sender
    from server.limits.clients import ClientLimits

logger = logging.getLogger(__name__)


class LimitedPeer(Protocol):
    """An interface with the members of a connection that the limits need."""

    peer: str
    closed: bool
    many_clients: bool

    @property
    def handshake_finished(self) -> bool:
        """True once CONNECT has been answered."""

    def end_with(self, words: str) -> None:
        """Send the client the reason, and close the connection."""

    @property
    def abort(self) -> Callable[[], object]:
        """A function that closes the connection immediately."""

    @property
    def log_fields(self) -> dict[str, object]:
        """The connection's fields in structured log lines."""

    @property
    def decoder(self) -> FrameDecoder:
        """The decoder of received frames, which buffers an incomplete frame."""

    @property
    def sender(self) -> Sender:
        """The object that sends bytes to the client."""


class LimitedConnection:
    """Applies the limits on clients to one connection."""

    def __init__(self, cnx: LimitedPeer, limits: ClientLimits, clock: Clock) -> None:
        self._cnx = proxy(cnx)
        self._limits = limits
        self._clock = clock
        self._counted_as = ""
        self._timer: TimerHandle | None = None
        a_second = limits.requests_a_second
        self._rate = Rate(a_second, clock) if a_second > 0 else None

    def accepted(self) -> str | None:
        """Count the new connection, and start its handshake deadline.

        Returns the reason for a refusal if there are too many connections, else None.
        """
        self._counted_as, seconds = self._cnx.peer, self._limits.handshake_seconds
        if seconds > 0:
            self._timer = self._clock.call_at(self._clock.now() + seconds, self._handshake_is_late)
        return self._limits.connections.opened(self._counted_as)

    def lost(self) -> None:
        """Stop counting the connection against the limits.

        May be called repeatedly, and before ``accepted``.
        """
        if self._timer is not None:
            self._timer.cancel()
        self.keeps(0, 0)
        self.keeps_first(0)
        if self._counted_as:
            self._limits.connections.ended(self._counted_as)
            self._counted_as = ""

    def too_soon(self, kind: int) -> bool:
        """Return True if a command exceeds the connection's request rate; a proxy has no limit."""
        if self._rate is None or kind not in REQUESTS or self._cnx.many_clients:
            return False
        if self._rate.take():
            return False
        self._limits.refusals.add(Limit.REQUEST_RATE)
        return True

    def keeps(self, frame_number: int, size_bytes: int) -> None:
        """Count the buffered bytes of an incomplete frame toward the limit of all connections."""
        self._limits.unfinished.keeps(self, frame_number, size_bytes)

    def keeps_first(self, size_bytes: int) -> None:
        """Count the bytes buffered before CONNECT toward the limit of all connections."""
        self._limits.first.keeps(self, 0, size_bytes)

    def unfinished_too_long(self, size_bytes: int, most_bytes: int) -> None:
        """Close the connection, and free the bytes of its incomplete frame."""
        cnx = self._cnx
        all_of_them = "those" if cnx.handshake_finished else "those before CONNECT"
        key = " (floodgateMaxUnfinishedFramesMB)" if cnx.handshake_finished else ""
        logger.warning(
            "closing %s: a frame of which %d bytes came has not ended, and is the oldest of %s "
            "that together keep more than %d MB%s",
            cnx.peer,
            size_bytes,
            all_of_them,
            most_bytes >> 20,
            key,
            extra=cnx.log_fields,
        )
        cnx.decoder.discard()
        cnx.abort()

    def _handshake_is_late(self) -> None:
        cnx, seconds = self._cnx, self._limits.handshake_seconds
        if cnx.handshake_finished or cnx.closed:
            return
        self._limits.refusals.add(Limit.HANDSHAKE)
        words = f"no CONNECT came within {seconds:g} s (floodgateHandshakeTimeoutMs)"
        logger.info("closing %s: %s", cnx.peer, words, extra=cnx.log_fields)
        if cnx.sender.established:
            cnx.end_with(words)
        else:
            cnx.abort()  # Before TLS is established no text can be sent.
