"""Background tasks that an object starts and cancels."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class BackgroundTasks:
    """Set of tasks that no caller awaits, kept alive until they end.

    The event loop alone would not keep them alive.

    Args:
        failed: Called with the error of a failed task; None: asyncio logs the error.
    """

    def __init__(self, failed: Callable[[BaseException], object] | None = None) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._failed = failed

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, object]) -> None:
        """Run a coroutine in a background task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended if self._failed else self._tasks.discard)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if self._failed and not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in tuple(self._tasks):
            task.cancel()

    async def finished(self) -> None:
        """Wait until all tasks have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it has ended; no-op for None and the current task."""
    if task is not None and task is not asyncio.current_task():
        task.cancel()
        await asyncio.wait([task])
