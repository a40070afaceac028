"""Requests to the broker for the existence of further messages."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from client.exceptions import PulsarException

if TYPE_CHECKING:
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

QUESTION_SECONDS = 1.0
"""Shortest interval of requests, and lifetime of an answer."""


class Growing(Protocol):
    """A queue able to grow if more is pending."""

    @property
    def full(self) -> bool:
        """True if the broker has used up all permits since the last growth."""

    async def more_is_pending(self) -> bool:
        """Request the answer from the broker. See Granting."""

    def grow(self) -> None:
        """Double the queue."""


class PendingQuestions:
    """The requests of a consumer: one in flight, and one per second.

    While an answer is fresh, a queue filled by the broker grows without a new request: the pending
    messages went into the queue.

    Args:
        clock: The source of time.
        tasks: The owner's set of running requests, awaited at close.

    Attributes:
        latest: The queue of the latest arrival: among a consumer's topics, the only one requested;
            the others have no messages, or enough permits.
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
        """Grow the queue if more is pending; request at most once per second."""
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
        """Stop requests for a closed queue."""
        if self._asked is queue and self._task is not None:
            self._task.cancel()
        if self.latest is queue:
            self.latest = None
        if self._pending is queue:
            self._pending = None
