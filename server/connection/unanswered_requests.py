"""Counts and log lines of requests that profile pulsar leaves unanswered on purpose."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

LINES_PER_PERIOD = 10
"""Requests logged individually in a period; more lines would add no information."""
PERIOD_SECONDS = 60.0
NAMESPACE_CHARACTERS = 200
"""Most logged characters of a namespace, which the proxy has in the client's spelling."""


class UnansweredRequests:
    """Counts and logs requests left unanswered, as a real broker and proxy leave them.

    Each is counted, and logged with a line of its own, up to LINES_PER_PERIOD in PERIOD_SECONDS;
    the first line of the next period has the number of unlogged requests.

    Args:
        clock: The source of time.
        kept: What an unanswered request leaks, for the log line; empty for nothing.
    """

    def __init__(self, clock: Clock, kept: str = "") -> None:
        self._clock = clock
        self._kept = kept
        self._period_ends_at = 0.0
        self._lines = 0
        self._without_line = 0
        self.total = 0

    def left(self, namespace: str, peer: str, reason: str) -> None:
        """Count a request left unanswered, and log it unless many were logged recently."""
        self.total += 1
        now = self._clock.now()
        if now >= self._period_ends_at:
            self._start_period(now)
        if self._lines >= LINES_PER_PERIOD:
            self._without_line += 1
            return
        self._lines += 1
        logger.warning(
            "as shipped, a request about %r for %s is never answered%s: %s",
            namespace[:NAMESPACE_CHARACTERS],
            peer,
            self._kept,
            reason,
        )

    def _start_period(self, now: float) -> None:
        if self._without_line:
            logger.warning(
                "as shipped, %d more requests were never answered; %d since the start",
                self._without_line,
                self.total - 1,
            )
        self._period_ends_at = now + PERIOD_SECONDS
        self._lines = self._without_line = 0
