"""The keep-alive of a connection: a verdict at each tick of keepAliveIntervalSeconds.

As shipped: an unfinished handshake is closed, an unanswered PING closes unless reading is paused,
otherwise a PING is sent. Reading that is paused without end therefore keeps a silent peer for
ever. Judged by progress, a peer that takes what it is sent is alive, however slowly it answers;
one that does not is closed, paused or not.

Source: upstream PulsarHandler.handleKeepAliveTimeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """The action that a tick asks for."""

    SEND_PING = "send a PING"
    WAIT = "nothing"
    CLOSE_HANDSHAKE = "the handshake was not finished in time"
    CLOSE_SILENT = "a PING was not answered in time"
    CLOSE_STUCK = "nothing it was sent was acknowledged, and reading from it is paused"


CLOSING = {Verdict.CLOSE_HANDSHAKE, Verdict.CLOSE_SILENT, Verdict.CLOSE_STUCK}


@dataclass(frozen=True, slots=True)
class PeerState:
    """A peer at a tick.

    Attributes:
        ready: Its handshake is finished.
        paused: It is not read.
        frames_seen: Frames that came from it, ever.
        acknowledged_bytes: What it acknowledged, ever.
        outstanding: Whether it has anything to acknowledge.
    """

    ready: bool
    paused: bool
    frames_seen: int
    acknowledged_bytes: int = 0
    outstanding: bool = False


class KeepAlive:
    """The ticks of one connection.

    Args:
        by_progress: Whether progress counts as life, and its lack ends a paused peer.
    """

    def __init__(self, *, by_progress: bool) -> None:
        self._by_progress = by_progress
        self._waiting = False
        self._frames_seen = 0
        self._acknowledged_bytes = 0
        self._was_outstanding = False

    def tick(self, state: PeerState) -> Verdict:
        """Judge the time since the last tick."""
        heard = state.frames_seen != self._frames_seen
        progressed = state.acknowledged_bytes > self._acknowledged_bytes
        stuck = state.outstanding and self._was_outstanding and not progressed
        self._frames_seen = state.frames_seen
        self._acknowledged_bytes = state.acknowledged_bytes
        self._was_outstanding = state.outstanding
        self._waiting = self._waiting and not heard
        if not state.ready:
            return Verdict.CLOSE_HANDSHAKE
        if self._by_progress and state.paused:
            self._waiting = False  # What is not read cannot answer a PING.
            return Verdict.CLOSE_STUCK if stuck and not heard else Verdict.WAIT
        if self._waiting and self._by_progress and progressed:
            return Verdict.WAIT
        if self._waiting and not state.paused:
            return Verdict.CLOSE_SILENT
        self._waiting = True
        return Verdict.SEND_PING
