"""Questions to the broker whether it holds more messages than it may send."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from client.exceptions import PulsarException

if TYPE_CHECKING:
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

QUESTION_SECONDS = 1.0
"""The least time between two questions; for so long an answer counts."""


class Growing(Protocol):
    """A queue that may grow if more is pending."""

    @property
    def full(self) -> bool:
        """True if the broker used up all permits since the queue grew last."""

    async def more_is_pending(self) -> bool:
        """Ask the broker. See Granting."""

    def grow(self) -> None:
        """Double the queue."""


class PendingQuestions:
    """The questions of one consumer: one at a time, and one a second.

    While an answer counts, a queue that the broker filled up grows without a new one: what was
    pending went into it.

    Args:
        clock: Where time comes from.
        tasks: Where its question is kept while it is under way, for the owner to wait for.

    Attributes:
        latest: The queue to which something came last: of a consumer's topics, it alone is asked
            for, since the others have nothing, or permits enough.
    """

    def __init__(self, clock: Clock, tasks: set[asyncio.Task[None]]) -> None:
        self._clock = clock
        self._tasks = tasks
        self._next_at = 0.0
        self._asked: Growing | None = None
        self._pending: Growing | None = None
        self._task: asyncio.Task[None] | None = None
        self.latest: Growing | None = None

    def ask(self, queue: Growing) -> None:
        """Ask whether more is pending, unless it is known or too early; if so, the queue grows."""
        if self.latest is not None and self.latest is not queue:
            return
        now = self._clock.now()
        if now < self._next_at:
            if queue.full and self._pending is queue:
                queue.grow()
        elif self._task is None:
            self._next_at = now + QUESTION_SECONDS
            self._asked, self._pending = queue, None
            self._task = asyncio.get_running_loop().create_task(self._question(queue))
            self._tasks.add(self._task)
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._task = None

    async def _question(self, queue: Growing) -> None:
        try:
            if await queue.more_is_pending():
                self._pending = queue
                queue.grow()
        except PulsarException as error:
            logger.debug("It is not known whether more is pending: %s", error)

    def forget(self, queue: Growing) -> None:
        """Ask no more for a queue that is closed."""
        if self._asked is queue and self._task is not None:
            self._task.cancel()
        if self.latest is queue:
            self.latest = None
        if self._pending is queue:
            self._pending = None
