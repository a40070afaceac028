"""TLS handshakes in progress on a server's ports, each with a deadline.

A connection counts as a client only after its handshake. Until then it is registered here, so that
a drain finds it, and a stalled peer is closed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from proto.transport.tls import TlsLayer

logger = logging.getLogger(__name__)


class Handshaking(Protocol):
    """A connection during its handshake."""

    @property
    def peer(self) -> str:
        """Its address."""

    def abort(self) -> None:
        """Close it."""

    def reset(self) -> None:
        """Close it, so that the kernel frees its buffers."""


class AcceptedTls(NamedTuple):
    """The TLS of an accepted connection.

    Attributes:
        layer: The connection's TLS layer.
        handshakes: Its registry until it is a client.
    """

    layer: TlsLayer
    handshakes: TlsHandshakes


class TlsHandshakes:
    """The handshakes of a process.

    Args:
        clock: The source of time.
        seconds: floodgateTlsHandshakeTimeoutMs: the deadline of each.

    Attributes:
        seconds: As given.
        finished_total: Successful handshakes.
        failed_total: Handshakes without a common protocol, or whose peer left.
        timed_out_total: Handshakes beyond the deadline.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self._under_way: dict[Handshaking, TimerHandle] = {}
        self.finished_total = 0
        self.failed_total = 0
        self.timed_out_total = 0

    @property
    def under_way(self) -> int:
        """Number of handshakes in progress."""
        return len(self._under_way)

    def began(self, cnx: Handshaking) -> None:
        """Start the deadline of an accepted connection."""
        end = self._clock.now() + self.seconds
        self._under_way[cnx] = self._clock.call_at(end, self._too_slow, cnx)

    def finished(self, cnx: Handshaking) -> None:
        """Record the end of a successful handshake."""
        if self._forget(cnx):
            self.finished_total += 1

    def lost(self, cnx: Handshaking) -> None:
        """Record the end of a connection, which may have been in its handshake."""
        if self._forget(cnx):
            self.failed_total += 1

    def abort_all(self) -> None:
        """Close connections in their handshake, as the server accepts none any more."""
        for cnx in list(self._under_way):
            cnx.abort()

    def _too_slow(self, cnx: Handshaking) -> None:
        self._forget(cnx)
        self.timed_out_total += 1
        logger.info("closing %s: no TLS handshake in %g s", cnx.peer, self.seconds)
        cnx.reset()

    def _forget(self, cnx: Handshaking) -> bool:
        timer = self._under_way.pop(cnx, None)
        if timer is not None:
            timer.cancel()
        return timer is not None
