"""Whether a connection's frames may be handled now: a set of causes, open when it is empty."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class PauseCause(Enum):
    """Why reading is paused (upstream: ServerCnxThrottleTracker.ThrottleType)."""

    OUTBOUND_BUFFER_FULL = "the peer does not read its answers"
    PEER_LEG_FULL = "the other side of the pipe does not take more"
    CONNECTING_TO_BROKER = "the pipe is not open yet"


class ReadGate:
    """Pauses reading at the first cause and resumes it when the last is gone.

    A set, never a boolean: whoever lifts his own cause cannot lift another's.

    Args:
        pause: Called when reading must stop.
        resume: Called when reading may go on.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._causes: set[PauseCause] = set()

    def __repr__(self) -> str:
        causes = ", ".join(sorted(cause.name for cause in self._causes))
        return f"<ReadGate {'closed: ' + causes if causes else 'open'}>"

    @property
    def open(self) -> bool:
        """Whether frames may be handled."""
        return not self._causes

    def close_for(self, cause: PauseCause) -> None:
        """Add a cause; the same one twice counts once."""
        was_open = self.open
        self._causes.add(cause)
        if was_open:
            self._pause()

    def open_for(self, cause: PauseCause) -> None:
        """Lift a cause; one that was not there is no matter."""
        if cause in self._causes:
            self._causes.remove(cause)
            if self.open:
                self._resume()
