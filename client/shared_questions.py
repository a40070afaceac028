"""Singleflight: identical concurrent requests are sent once."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class SharedQuestions(Generic[T]):
    """Identical concurrent requests sent once, with bounded concurrency.

    A request without waiters is cancelled.

    Args:
        places: Limit of concurrent requests, possibly shared between several kinds.
    """

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._asked: dict[Hashable, _Asked[T]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    async def answer(
        self, key: Hashable, question: Callable[[], Coroutine[object, object, T]]
    ) -> T:
        """Return the answer to a request.

        Args:
            key: Requests with equal keys share their answer.
            question: Sends the request.

        Raises:
            Exception: The request's error.
        """
        asked = self._asked.get(key)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._asked[key] = _Asked(loop.create_task(self._ask(question)))
            asked.task.add_done_callback(partial(self._answered, key, asked))
        asked.askers += 1
        try:
            return await asyncio.shield(asked.task)
        finally:
            asked.askers -= 1
            if not asked.askers:
                self._forget(key, asked)
                asked.task.cancel()
            del asked  # Otherwise an exception's traceback would keep itself alive.

    async def _ask(self, question: Callable[[], Coroutine[object, object, T]]) -> T:
        async with self._places:
            return await question()

    def _answered(self, key: Hashable, asked: _Asked[T], _: asyncio.Task[T]) -> None:
        self._forget(key, asked)

    def _forget(self, key: Hashable, asked: _Asked[T]) -> None:
        if self._asked.get(key) is asked:
            del self._asked[key]


class _Asked(Generic[T]):
    """A pending request with its number of waiters."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.askers = 0
