"""Gate that pauses the reading of a connection while there is any reason for a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.flow.causes import PauseCause
    from limiter.flow.totals import FlowTotals


class ReadGate:
    """Gate that pauses reading for the first reason and resumes when the last is lifted.

    The reasons are a set instead of a boolean, so that lifting one reason does not lift another.
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
        """True if received frames may be processed."""
        return not self._causes

    def is_closed_for(self, cause: PauseCause) -> bool:
        """Return True if ``cause`` pauses the connection."""
        return cause in self._causes

    def close_for(self, cause: PauseCause) -> None:
        """Pause reading for the reason ``cause``; no-op if already paused for it."""
        if cause in self._causes:
            return
        was_open = not self._causes
        self._causes[cause] = 0.0
        if self._totals is not None:
            self._causes[cause] = self._totals.paused(cause, first=was_open)
        if was_open:
            self._pause()

    def open_for(self, cause: PauseCause) -> None:
        """Lift the reason ``cause``; resume reading if there is no other reason."""
        since = self._causes.pop(cause, None)
        if since is None:
            return
        if self._totals is not None:
            self._totals.resumed(cause, since, last=not self._causes)
        if not self._causes:
            self._resume()

    def end(self) -> None:
        """Drop all reasons for pausing a closed connection, without resuming."""
        causes, self._causes = self._causes, {}
        if self._totals is not None:
            for cause, since in causes.items():
                self._totals.ended(cause, since)
