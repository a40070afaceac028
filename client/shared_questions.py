"""Questions that several ask at the same time, put to the server once."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class SharedQuestions(Generic[T]):
    """Asks each question once for all who want its answer meanwhile, and only so many at a time.

    A question nobody waits for any more is given up.

    Args:
        places: As many questions are put to the server at once; more wait for their turn. It may
            serve several kinds of questions.
    """

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._asked: dict[Hashable, _Asked[T]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    async def answer(
        self, key: Hashable, question: Callable[[], Coroutine[object, object, T]]
    ) -> T:
        """Return the answer to a question.

        Args:
            key: Questions with the same one share their answer.
            question: Asks.

        Raises:
            Exception: That of the question.
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
            del asked  # What it raised would be kept by its own traceback, with who asked.

    async def _ask(self, question: Callable[[], Coroutine[object, object, T]]) -> T:
        async with self._places:
            return await question()

    def _answered(self, key: Hashable, asked: _Asked[T], _: asyncio.Task[T]) -> None:
        self._forget(key, asked)

    def _forget(self, key: Hashable, asked: _Asked[T]) -> None:
        if self._asked.get(key) is asked:
            del self._asked[key]


class _Asked(Generic[T]):
    """A question under way, and how many wait for its answer."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.askers = 0
