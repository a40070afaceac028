"""The requests of one connection that are under way: one task each, one exception boundary.

A connection's requests end with it: ``cancel_all`` is called in the turn in which the peer is
lost. (asyncio's TaskGroup is not used because one failed request must not cancel its siblings,
and because the group would need a task of its own for each of thousands of idle connections.)
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class RequestTasks:
    """Tasks of one connection.

    Bound: whoever starts a request holds a place of the lookup semaphore for it.

    Args:
        on_error: Answers a request whose handler failed in a way nobody foresaw; given the
            request id and the error's text.
    """

    def __init__(self, on_error: Callable[[int, str], object]) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, request_id: int, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a request; what it raises is answered, and its siblings go on.

        Args:
            request_id: The client's, for the answer to an unforeseen failure.
            work: Makes the coroutine; not called if the connection ends first.
        """
        task = asyncio.get_running_loop().create_task(self._guard(request_id, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(
        self, request_id: int, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            await work()
        except Exception as error:
            logger.exception("request %d failed after an error of ours", request_id)
            self._on_error(request_id, f"{type(error).__name__}: {error}")

    def cancel_all(self) -> None:
        """End every request; what they hold comes back as their blocks exit."""
        for task in list(self._tasks):
            task.cancel()

    async def finished(self) -> None:
        """Wait until no request is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)
