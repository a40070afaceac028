"""The requests that profile pulsar never answers: counted and logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

LINES_PER_PERIOD = 10
"""Requests logged one by one in a period; a storm of them tells nothing more."""
PERIOD_SECONDS = 60.0
NAMESPACE_CHARACTERS = 200
"""Characters of a namespace that are logged: the proxy has it as the client sent it."""


class UnansweredRequests:
    """Requests left without an answer, as a real broker and proxy leave them.

    Each is counted. Each is logged with a line of its own, but no more than LINES_PER_PERIOD
    in PERIOD_SECONDS; the first line of the next period says how many had none.

    Args:
        clock: Where time comes from.
        kept: What such a request keeps for ever, for the line; empty if nothing.
    """

    def __init__(self, clock: Clock, kept: str = "") -> None:
        self._clock = clock
        self._kept = kept
        self._period_ends_at = 0.0
        self._lines = 0
        self._without_line = 0
        self.total = 0

    def left(self, namespace: str, peer: str, reason: str) -> None:
        """Count one request, and log it if there is a line left for it."""
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
