"""In-flight requests of a connection: a task and an exception boundary for each.

A connection's requests end with it: ``cancel_all`` is called in the turn of the disconnect. (Not
asyncio's TaskGroup, because a failed request must not cancel its siblings, and because the group
would need a task for each of thousands of idle connections.)
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class RequestTasks:
    """Tasks of a connection.

    Bound: each request holds a slot of the lookup semaphore.

    Args:
        on_error: Answers a request whose handler failed unexpectedly; called with the request id
            and the error's text.
    """

    def __init__(self, on_error: Callable[[int, str], object]) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, request_id: int, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a request; its errors are answered, without affecting its siblings.

        Args:
            request_id: The client's, for the response to an unexpected failure.
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
            logger.exception("request %d failed after an internal error", request_id)
            self._on_error(request_id, f"{type(error).__name__}: {error}")

    def cancel_all(self) -> None:
        """Cancel every request; their resources are released as their blocks exit."""
        for task in list(self._tasks):
            task.cancel()

    async def finished(self) -> None:
        """Wait until no request is in flight."""
        while self._tasks:
            await asyncio.wait(self._tasks)
