"""A consumer's subscriptions, kept equal to the discovered topics."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from client.exceptions import AlreadyClosed, TopicNotFound
from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from client.patience import Patience

    _Step = asyncio.Task[Exception | None]

logger = logging.getLogger(__name__)

AT_ONCE = 50
"""Maximum number of concurrent subscribes and unsubscribes."""


class SeveralTopics(Protocol):
    """A consumer of several topics."""

    async def add_topic(self, name: str) -> None:
        """Subscribe to a topic with all of its partitions."""

    async def remove_topic(self, name: str) -> None:
        """Leave a topic with all of its partitions."""


class KeptTopics:
    """A loop subscribing to wanted topics and leaving all others, with retries until done.

    Retries have growing delays.

    Args:
        consumer: The consumer of the topics.
        patience: Waits between attempts.
        backoff: Delays between attempts.

    Attributes:
        topics: The subscribed topics.
    """

    def __init__(
        self, consumer: SeveralTopics, patience: Patience, backoff: Backoff | None = None
    ) -> None:
        self._consumer = consumer
        self._patience = patience
        self._backoff = backoff or Backoff(0.1, 60.0)
        self._wanted: set[str] = set()
        self._waiting: asyncio.Future[None] | None = None
        self._places = asyncio.Semaphore(AT_ONCE)
        self._task: asyncio.Task[None] | None = None
        self._opening = self._closed = False
        self.topics: set[str] = set()

    async def open(self, wanted: set[str]) -> None:
        """Subscribe to the first topics, until a failure.

        Raises:
            PulsarException: Subscribing to a topic failed.
        """
        self._wanted = wanted
        self._opening = True
        try:
            errors = await self._attempt()
        finally:
            self._opening = False
        for error in filter(_is_final, errors):
            raise error
        self.want(self._wanted)

    def want(self, wanted: set[str]) -> None:
        """Replace the set of wanted topics."""
        self._wanted = wanted
        self._wake()
        if self._task is None and wanted != self.topics and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._until_kept())

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _give_up(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    async def _until_kept(self) -> None:
        try:
            while self._wanted != self.topics:
                wanted = self._wanted
                errors = await self._attempt()
                if errors:
                    logger.info("of %d topics: %s", len(errors), errors[0])
                    if wanted is self._wanted:
                        self._waiting = asyncio.get_running_loop().create_future()
                        seconds = self._backoff.next()
                        await self._patience.delay(seconds, *errors, waiter=self._waiting)
                else:
                    self._backoff.reset()
        finally:
            self._task = None

    async def _attempt(self) -> list[Exception]:
        """Subscribe to missing topics and leave the rest, once; return the errors.

        Slow topics do not delay topics wanted meanwhile.
        """
        tasks: dict[str, _Step] = {}
        under_way: set[_Step] = set()
        begun: set[str] | None = None
        try:
            while under_way or begun is not self._wanted:
                if begun is not self._wanted:
                    begun = self._wanted
                    self._begin(tasks, under_way)
                if under_way:
                    self._waiting = asyncio.get_running_loop().create_future()
                    await self._waiting
            outcomes = [task.result() for task in tasks.values()]
        except BaseException:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            raise
        return [error for error in outcomes if error is not None]

    def _begin(self, tasks: dict[str, _Step], under_way: set[_Step]) -> None:
        """Start steps neither running nor failed already."""

        def ended(task: _Step) -> None:
            under_way.discard(task)
            error = None if task.cancelled() else task.result()
            if self._opening and error is not None and _is_final(error):
                self._give_up(error)
            elif not under_way:
                self._wake()

        for name in sorted(self._wanted ^ self.topics):
            before = tasks.get(name)
            if before is None or (before.done() and before.result() is None):
                step = self._add if name in self._wanted else self._remove
                task = tasks[name] = asyncio.get_running_loop().create_task(self._one(name, step))
                under_way.add(task)
                task.add_done_callback(ended)

    async def _one(
        self, name: str, step: Callable[[str], Coroutine[object, object, None]]
    ) -> Exception | None:
        async with self._places:
            try:
                await step(name)
            except AlreadyClosed as error:
                return None if self._closed else error
            except Exception as error:  # noqa: BLE001 - one topic must not stop the others
                return error
        return None

    async def _add(self, name: str) -> None:
        await self._consumer.add_topic(name)
        self.topics.add(name)

    async def _remove(self, name: str) -> None:
        await self._consumer.remove_topic(name)
        self.topics.discard(name)

    async def close(self) -> None:
        """Stop all changes."""
        self._closed = True
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


def _is_final(error: Exception) -> bool:
    """Tell whether an error ends the opening: a topic may be deleted after its listing."""
    return not isinstance(error, TopicNotFound)
