"""A gate before the frames of a connection: a set of pause causes, open when the set is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.flow.causes import PauseCause
    from limiter.flow.totals import FlowTotals


class ReadGate:
    """Pauses reading at the first cause and resumes when the last cause is lifted.

    A set instead of a boolean, so that lifting a cause does not lift another.
    """

    def __init__(
        self,
        pause: Callable[[], None],
        resume: Callable[[], None],
        totals: FlowTotals | None = None,
    ) -> None:
        self._pause = pause
        self._resume = resume
        self._totals = totals
        self._causes: dict[PauseCause, float] = {}

    def __repr__(self) -> str:
        causes = ", ".join(sorted(cause.name for cause in self._causes))
        return f"<ReadGate {'closed: ' + causes if causes else 'open'}>"

    @property
    def open(self) -> bool:
        """True if frames may be handled."""
        return not self._causes

    def is_closed_for(self, cause: PauseCause) -> bool:
        """Return True if ``cause`` pauses the connection."""
        return cause in self._causes

    def close_for(self, cause: PauseCause) -> None:
        """Add a cause; a repeated cause counts once."""
        if cause in self._causes:
            return
        was_open = not self._causes
        self._causes[cause] = 0.0
        if self._totals is not None:
            self._causes[cause] = self._totals.paused(cause, first=was_open)
        if was_open:
            self._pause()

    def open_for(self, cause: PauseCause) -> None:
        """Lift a cause; no-op for an absent cause."""
        since = self._causes.pop(cause, None)
        if since is None:
            return
        if self._totals is not None:
            self._totals.resumed(cause, since, last=not self._causes)
        if not self._causes:
            self._resume()

    def end(self) -> None:
        """Drop all causes of a closed connection without resuming."""
        causes, self._causes = self._causes, {}
        if self._totals is not None:
            for cause, since in causes.items():
                self._totals.ended(cause, since)
