"""Keep-alive, which closes connections of dead clients, and a check if a client is alive now."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from weakref import proxy

import proto.PulsarApi_pb2 as pb
from limiter.clock import deadline
from limiter.flow.causes import CloseReason
from proto.frames import encode_command
from proto.transport.keep_alive import CLOSING, KeepAlive, PeerState, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle
    from proto.transport.connection import Connection
    from server.connection.flow_parts import FlowParts

logger = logging.getLogger(__name__)

_PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))


class KeepAliveTimer:
    """Checks every keepAliveIntervalSeconds that a connection's peer is alive.

    0 or less: never.
    """

    def __init__(self, cnx: Connection, flow: FlowParts) -> None:
        self._cnx = proxy(cnx)
        self._flow = flow
        self._judge = KeepAlive(by_progress=flow.connection_rules.keeps_alive_by_progress)
        self._timer: TimerHandle | None = None
        self._unanswered_pings = 0

    def start(self) -> None:
        """Schedule the next check that the peer is alive."""
        flow = self._flow
        if flow.keep_alive_seconds > 0:
            self._timer = flow.clock.call_at(flow.clock.now() + flow.keep_alive_seconds, self._tick)

    def stop(self) -> None:
        """Cancel the next check that the peer is alive."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ping(self) -> None:
        """Send a PING to the peer."""
        self._unanswered_pings += 1
        self._cnx.enqueue([_PING], len(_PING))

    def pong_was_asked_for(self) -> bool:
        """Match a PONG with an earlier PING; return False if the PONG is unsolicited."""
        if not self._unanswered_pings:
            return False
        self._unanswered_pings -= 1
        return True

    def _tick(self) -> None:
        self.start()
        cnx, sender = self._cnx, self._cnx.sender
        outstanding = sender.outstanding
        verdict = self._judge.tick(
            PeerState(
                cnx.handshake_finished,
                cnx.paused,
                cnx.intake.frames_seen,
                sender.acknowledged_bytes() if outstanding else sender.written_bytes,
                outstanding,
            )
        )
        if verdict is Verdict.SEND_PING:
            self.ping()
        elif verdict in CLOSING:
            self._close(verdict)

    def _close(self, verdict: Verdict) -> None:
        if verdict is Verdict.CLOSE_STUCK:
            self._flow.totals.closed[CloseReason.KEEP_ALIVE] += 1
        seconds = self._flow.keep_alive_seconds
        told = self._cnx.peer, verdict.value, seconds
        logger.info("closing %s: %s (%g s)", *told, extra=self._cnx.log_fields)
        if self._flow.connection_rules.resets_dead_peers:
            self._cnx.sender.reset()
        else:
            self._cnx.abort()


class LivenessCheck:
    """Checks immediately, by a PING, that a client is alive; concurrent callers share the PING.

    Args:
        ping: Sends the PING.
        end: Closes the connection of a silent client.
        clock: The source of time.

    Source: upstream ServerCnx.checkConnectionLiveness.
    """

    __slots__ = ("_clock", "_end", "_heard", "_ping")

    def __init__(self, ping: Callable[[], object], end: Callable[[], object], clock: Clock) -> None:
        self._ping = ping
        self._end = end
        self._clock = clock
        self._heard: asyncio.Future[bool] | None = None

    async def lives(self, seconds: float) -> bool:
        """Return True as soon as the client sends any frame; False if it does not in time.

        After ``seconds`` of silence its connection is closed, and the result is False.
        """
        if self._heard is None:
            self._heard = asyncio.get_running_loop().create_future()
            self._ping()
        try:
            async with deadline(self._clock, seconds):
                return await asyncio.shield(self._heard)
        except TimeoutError:
            self._end()
            return False

    def heard(self) -> None:
        """End the check with success, as the client sent a frame and so is alive."""
        self._settle(lives=True)

    def lost(self) -> None:
        """End the check, as the connection was lost."""
        self._settle(lives=False)

    def _settle(self, *, lives: bool) -> None:
        heard, self._heard = self._heard, None
        if heard is not None and not heard.done():
            heard.set_result(lives)
