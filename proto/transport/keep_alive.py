"""Keep-alive of a connection: decides every keepAliveIntervalSeconds to ping, wait or close.

As upstream: a connection with an unfinished handshake is closed; so is one with an unanswered PING,
unless its reading is paused; otherwise a PING is sent. A connection whose reading stays paused is
therefore never closed, even if its peer sends nothing. By progress (profile ``floodgate``), a peer
that reads is alive, however slowly it answers; a peer that does not read is closed, paused or not.

Source: upstream PulsarHandler.handleKeepAliveTimeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """Action to take on a connection at a keep-alive tick."""

    SEND_PING = "send a PING"
    WAIT = "nothing"
    CLOSE_HANDSHAKE = "the handshake was not finished in time"
    CLOSE_SILENT = "a PING was not answered in time"
    CLOSE_STUCK = "nothing it was sent was acknowledged, and reading from it is paused"


CLOSING = {Verdict.CLOSE_HANDSHAKE, Verdict.CLOSE_SILENT, Verdict.CLOSE_STUCK}


@dataclass(frozen=True, slots=True)
class PeerState:
    """State of a peer at a keep-alive tick.

    Attributes:
        ready: Its handshake is finished.
        paused: Its reading is paused.
        frames_seen: All frames received from the peer.
        acknowledged_bytes: All bytes acknowledged by the peer.
        outstanding: Whether any bytes are unacknowledged.
    """

    ready: bool
    paused: bool
    frames_seen: int
    acknowledged_bytes: int = 0
    outstanding: bool = False


class KeepAlive:
    """The keep-alive state of a connection.

    Args:
        by_progress: Whether progress counts as life, and its lack closes a paused peer.
    """

    def __init__(self, *, by_progress: bool) -> None:
        self._by_progress = by_progress
        self._waiting = False
        self._frames_seen = 0
        self._acknowledged_bytes = 0
        self._was_outstanding = False

    def tick(self, state: PeerState) -> Verdict:
        """Return the action to take, judging by the peer's progress since the last tick."""
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
            self._waiting = False  # A paused peer's PONG would not be read.
            return Verdict.CLOSE_STUCK if stuck and not heard else Verdict.WAIT
        if self._waiting and self._by_progress and progressed:
            return Verdict.WAIT
        if self._waiting and not state.paused:
            return Verdict.CLOSE_SILENT
        self._waiting = True
        return Verdict.SEND_PING
