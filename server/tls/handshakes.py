"""Registry of a server's TLS handshakes in progress, each with a deadline.

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
    """An interface of a connection whose TLS handshake is in progress."""

    @property
    def peer(self) -> str:
        """The client's address."""

    def abort(self) -> None:
        """Close the connection immediately."""

    def reset(self) -> None:
        """Close the connection by a TCP reset, to free the kernel's buffers."""


class AcceptedTls(NamedTuple):
    """TLS on an accepted connection, with the registry of its handshake.

    Attributes:
        layer: The connection's TLS layer.
        handshakes: The registry of handshakes, in which the connection is until established.
    """

    layer: TlsLayer
    handshakes: TlsHandshakes


class TlsHandshakes:
    """The TLS handshakes in progress on a server's ports, and counts of ended handshakes.

    Args:
        clock: The source of time.
        seconds: The time limit of a handshake (floodgateTlsHandshakeTimeoutMs).

    Attributes:
        seconds: The time limit of a handshake.
        finished_total: Successful handshakes.
        failed_total: Handshakes that found no common protocol, or whose peer disconnected.
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
        """Number of TLS handshakes in progress."""
        return len(self._under_way)

    def began(self, cnx: Handshaking) -> None:
        """Register a connection's TLS handshake, and start its deadline."""
        end = self._clock.now() + self.seconds
        self._under_way[cnx] = self._clock.call_at(end, self._too_slow, cnx)

    def finished(self, cnx: Handshaking) -> None:
        """Count a connection's TLS handshake as successful, and cancel its deadline."""
        if self._forget(cnx):
            self.finished_total += 1

    def lost(self, cnx: Handshaking) -> None:
        """Count the TLS handshake of a lost connection as failed, if it was in progress."""
        if self._forget(cnx):
            self.failed_total += 1

    def abort_all(self) -> None:
        """Close all connections whose TLS handshake is in progress, as the server shuts down."""
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
