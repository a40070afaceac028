"""Flow control shared by the connections of a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.flow.outbound_buffer import OutboundTotals

if TYPE_CHECKING:
    from limiter.flow.totals import FlowTotals
    from proto.transport.hangup_watch import HangupWatch


TURN_SECONDS = 0.004
"""Most seconds for which the frames of a peer are handled in one turn: some small commands take
long."""
SHORTEST_TURN_SECONDS = 0.0005
"""The shortest turn, when many connections need more than a turn."""


@dataclass(slots=True)
class Turns:
    """The turns of a process's connections, shortened when many connections need long turns.

    Attributes:
        wanted: Connections with frames waiting for their next turn.
    """

    wanted: int = 0

    @property
    def seconds(self) -> float:
        """The length of a connection's turn now."""
        return max(SHORTEST_TURN_SECONDS, TURN_SECONDS / max(1, self.wanted))


@dataclass(frozen=True, slots=True)
class ProcessFlow:
    """Totals and watches of a process; a connection without a process has its own.

    Attributes:
        outbound: Pending bytes of all connections, and their bound.
        totals: Counters of pauses by cause.
        hangups: Detects disconnects of peers whose socket is not read.
        parks_frames: Profile ``floodgate``: frames are parked while a connection is paused, so that
            control frames can overtake them; and an entry that the kernel accepts immediately does
            not make the connection unwritable, so that a large response to a fast reader is no
            pause.
        turns: The turn lengths of connections.
    """

    outbound: OutboundTotals = field(default_factory=OutboundTotals)
    totals: FlowTotals | None = None
    hangups: HangupWatch | None = None
    parks_frames: bool = False
    turns: Turns = field(default_factory=Turns)
