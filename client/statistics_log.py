"""Periodic statistics in the log, as in the official client."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from limiter.clock import clock_sleep

if TYPE_CHECKING:
    from collections.abc import Collection

    from client.context import Part
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 50
"""Maximum number of lines logged in one event-loop iteration."""


class StatisticsLog:
    """A periodic log of a client's memory, producers, consumers and readers, a line each.

    Args:
        clock: The source of time.
        seconds: The interval; 0 for never.
        parts: The producers, consumers, readers.
        memory: The client's memory limit.
    """

    def __init__(
        self, clock: Clock, seconds: float, parts: Collection[Part], memory: MemoryLimitController
    ) -> None:
        self._clock, self._seconds = clock, seconds
        self._parts, self._memory = parts, memory
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start logging; idempotent."""
        if self._task is None and self._seconds:
            self._task = asyncio.get_running_loop().create_task(self._repeat())

    async def _repeat(self) -> None:
        while True:
            await clock_sleep(self._clock, self._seconds)
            if not logger.isEnabledFor(logging.INFO):
                continue
            logger.info("%s", self._memory.statistics())
            for number, part in enumerate(tuple(self._parts), 1):
                logger.info("%s", part.statistics())
                if not number % MOST_AT_ONCE:
                    await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop logging; idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
