"""What is to be brought up to date: each thing by one task at a time, until it has worked."""

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
"""The longest wait between two attempts while the database cannot be read."""


class CatchUps(Generic[KeyT]):
    """Runs what brings a thing up to date, once more if it is wanted again meanwhile.

    Bound: one task a thing.

    Args:
        catch_up: Brings one thing up to date, or raises StoreError.
        clock: Where time comes from.
    """

    def __init__(self, catch_up: Callable[[KeyT], Awaitable[None]], clock: Clock) -> None:
        self._catch_up = catch_up
        self._clock = clock
        self._tasks: dict[KeyT, asyncio.Task[None]] = {}
        self._wanted: set[KeyT] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def want(self, key: KeyT) -> None:
        """Have a thing brought up to date from now on."""
        self._wanted.add(key)
        if key not in self._tasks:
            work = self._run(key)
            self._tasks[key] = asyncio.get_running_loop().create_task(work)

    async def close(self) -> None:
        """Give up what is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: KeyT) -> None:
        backoff = Backoff(most_seconds=LONGEST_RETRY_SECONDS)
        try:
            while key in self._wanted:
                self._wanted.discard(key)
                try:
                    await self._catch_up(key)
                except StoreError:
                    self._wanted.add(key)
                    await clock_sleep(self._clock, backoff.next())
                except Exception:
                    # Nobody would ask again: what is not caught up stays wrong.
                    logger.exception("catching up with %s failed; it is tried again", key)
                    self._wanted.add(key)
                    await clock_sleep(self._clock, backoff.next())
        finally:
            del self._tasks[key]
