"""The last commands of a connection, decoded, in both directions; off by default.

Commands are shown as in debug log lines: without credentials and payloads. Bound: COMMANDS of each
of RECORDED connections; the oldest is evicted.
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
"""Most kept commands of a connection."""
RECORDED = 20
"""Most simultaneously recorded connections."""


class Told(NamedTuple):
    """A command.

    Attributes:
        at_ms: The time, in milliseconds since 1970.
        direction: ``received`` from the client, or ``sent`` to it.
        command: The description of the command.
    """

    at_ms: int
    direction: str
    command: str


class LastCommands:
    """Keeps the last commands of a connection."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.total = 0
        self.kept: deque[Told] = deque(maxlen=COMMANDS)

    def received(self, frame: Frame) -> None:
        """Record a received command."""
        self._keep("received", received_line(frame))

    def sent(self, buffers: Sequence[Buffer], size_bytes: int, *, in_a_pipe: bool) -> None:
        """Record commands that are sent together."""
        for line in sent_lines(buffers, size_bytes, in_a_pipe=in_a_pipe):
            self._keep("sent", line)

    def _keep(self, direction: str, line: str) -> None:
        self.total += 1
        self.kept.append(Told(self._clock.wall_ms(), direction, line))
