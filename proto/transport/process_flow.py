"""The part of flow control that the connections of a process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.flow.outbound_buffer import OutboundTotals

if TYPE_CHECKING:
    from limiter.flow.totals import FlowTotals
    from proto.transport.hangup_watch import HangupWatch


TURN_SECONDS = 0.004
"""Seconds for which the frames of one peer are handled before others have their turn: some small
commands take long."""
SHORTEST_TURN_SECONDS = 0.0005
"""The turn of each where many have more than a turn's."""


@dataclass(slots=True)
class Turns:
    """The turns of the connections of a process, which become short where many want long ones.

    Attributes:
        wanted: Connections that have frames which wait for their next turn.
    """

    wanted: int = 0

    @property
    def seconds(self) -> float:
        """The time that one may take now."""
        return max(SHORTEST_TURN_SECONDS, TURN_SECONDS / max(1, self.wanted))


@dataclass(frozen=True, slots=True)
class ProcessFlow:
    """Totals and watches of one process; without one a connection is on its own.

    Attributes:
        outbound: Pending bytes of all, and their bound.
        totals: Who is paused, and why.
        hangups: Notices that a peer has left whose socket is not read.
        parks_frames: Profile ``floodgate``: frames are parked while a connection is paused, so
            that control frames can overtake them; and an entry that the kernel takes at once
            makes nobody unwritable, so that a large answer to a fast reader is no pause.
        turns: How long each may have its frames handled.
    """

    outbound: OutboundTotals = field(default_factory=OutboundTotals)
    totals: FlowTotals | None = None
    hangups: HangupWatch | None = None
    parks_frames: bool = False
    turns: Turns = field(default_factory=Turns)
