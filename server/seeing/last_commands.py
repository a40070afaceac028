"""The last commands of one connection, decoded, in both directions; off unless asked for.

What is shown of a command is what the log shows at level debug: no credentials, no payloads.
Bound: COMMANDS of each of RECORDED connections; the oldest gives way.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from proto.command_log import received_line, sent_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock
    from proto.frames import Frame

    Buffer = bytes | memoryview

COMMANDS = 200
"""Commands that are kept of a connection."""
RECORDED = 20
"""Connections whose commands may be kept at once."""


class Told(NamedTuple):
    """One command.

    Attributes:
        at_ms: The time, in milliseconds since 1970.
        direction: ``received`` from the client, or ``sent`` to it.
        command: The command in words.
    """

    at_ms: int
    direction: str
    command: str


class LastCommands:
    """Keeps the last commands of one connection."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.total = 0
        self.kept: deque[Told] = deque(maxlen=COMMANDS)

    def received(self, frame: Frame) -> None:
        """Keep a received command."""
        self._keep("received", received_line(frame))

    def sent(self, buffers: Sequence[Buffer], size_bytes: int, *, in_a_pipe: bool) -> None:
        """Keep commands that are sent together."""
        for line in sent_lines(buffers, size_bytes, in_a_pipe=in_a_pipe):
            self._keep("sent", line)

    def _keep(self, direction: str, line: str) -> None:
        self.total += 1
        self.kept.append(Told(self._clock.wall_ms(), direction, line))
