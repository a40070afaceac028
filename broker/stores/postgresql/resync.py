"""Resynchronization tasks: one for each key, repeated until successful."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from broker.stores.changes import StoreError
from limiter.backoff import Backoff
from limiter.clock import clock_sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limiter.clock import Clock

logger = logging.getLogger(__name__)

KeyT = TypeVar("KeyT", bound=Hashable)
LONGEST_RETRY_SECONDS = 5.0
"""Longest delay between two attempts while the database is unreadable."""


class ResyncTasks(Generic[KeyT]):
    """Resynchronization tasks, each repeated if requested again while running.

    Bound: one task for each key.

    Args:
        resync: Brings one key up to date, or raises StoreError.
        clock: Time source.
    """

    def __init__(self, resync: Callable[[KeyT], Awaitable[None]], clock: Clock) -> None:
        self._resync = resync
        self._clock = clock
        self._tasks: dict[KeyT, asyncio.Task[None]] = {}
        self._requested: set[KeyT] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def request(self, key: KeyT) -> None:
        """Bring a key up to date with its state from now on."""
        self._requested.add(key)
        if key not in self._tasks:
            work = self._run(key)
            self._tasks[key] = asyncio.get_running_loop().create_task(work)

    async def close(self) -> None:
        """Cancel all tasks."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: KeyT) -> None:
        backoff = Backoff(most_seconds=LONGEST_RETRY_SECONDS)
        try:
            while key in self._requested:
                self._requested.discard(key)
                try:
                    await self._resync(key)
                except StoreError:
                    self._requested.add(key)
                    await clock_sleep(self._clock, backoff.next())
                except Exception:
                    # Without a new request the key would stay out of date.
                    logger.exception("catching up with %s failed; it is tried again", key)
                    self._requested.add(key)
                    await clock_sleep(self._clock, backoff.next())
        finally:
            del self._tasks[key]
