"""The TLS handshakes under way on a server's binary ports: each has a time, and an end.

A connection counts as a client only once its handshake is finished. Until then it stands here, so
that a drain finds it, and a peer that stops half way is cut off.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from proto.transport.connection import Connection
    from proto.transport.tls import TlsLayer

logger = logging.getLogger(__name__)


class AcceptedTls(NamedTuple):
    """The TLS of a connection that is accepted.

    Attributes:
        layer: Of this connection alone.
        handshakes: Where it stands until it is a client.
    """

    layer: TlsLayer
    handshakes: TlsHandshakes


class TlsHandshakes:
    """The handshakes of one process.

    Args:
        clock: Where time comes from.
        seconds: floodgateTlsHandshakeTimeoutMs: how long each may take.

    Attributes:
        finished_total: Those that ended well.
        failed_total: Those whose peer spoke no TLS that both accept, or left.
        timed_out_total: Those that took too long.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._under_way: dict[Connection, TimerHandle] = {}
        self.finished_total = 0
        self.failed_total = 0
        self.timed_out_total = 0

    @property
    def under_way(self) -> int:
        """Handshakes that are not finished."""
        return len(self._under_way)

    def began(self, cnx: Connection) -> None:
        """Give a connection that was accepted its time."""
        end = self._clock.now() + self._seconds
        self._under_way[cnx] = self._clock.call_at(end, self._too_slow, cnx)

    def finished(self, cnx: Connection) -> None:
        """Take the end of a handshake that went well."""
        if self._forget(cnx):
            self.finished_total += 1

    def lost(self, cnx: Connection) -> None:
        """Take the end of a connection, which may have been in its handshake."""
        if self._forget(cnx):
            self.failed_total += 1

    def abort_all(self) -> None:
        """Cut off whoever is in its handshake: the server takes nobody any more."""
        for cnx in list(self._under_way):
            cnx.abort()

    def _too_slow(self, cnx: Connection) -> None:
        self._forget(cnx)
        self.timed_out_total += 1
        logger.info("closing %s: no TLS handshake in %g s", cnx.peer, self._seconds)
        cnx.sender.reset()

    def _forget(self, cnx: Connection) -> bool:
        timer = self._under_way.pop(cnx, None)
        if timer is not None:
            timer.cancel()
        return timer is not None
