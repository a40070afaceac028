"""Watchers, which answer a client's requests for a watch, and then send it updates.

There are two kinds. As in Pulsar, an ``OrderedWatcher`` queues each update, and drops the queue
when 10,000 wait. A ``LatestWatcher`` has no queue: it remembers its client's version, and after a
delay (a full connection, a waiting permit) sends all missing changes together.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.watches.names.sorted_names import EMPTY_NAMES
from broker.watches.sets.encoded_names import EncodedNames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from broker.watches.context import WatchTotals
    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.sender import WatchSender
    from broker.watches.sets.watched_sets import WatchedSet
    from broker.watches.update_permit import SetUpdate

logger = logging.getLogger(__name__)

MAX_QUEUED_UPDATES = 10_000
"""Queue length of an OrderedWatcher (upstream: TopicListService)."""


class TopicListWatcher(ABC):
    """Sends a client the names of a watched set, and then each change of the set.

    Args:
        sender: Sends to the client.
        totals: Counters for the metrics.
        max_update_bytes: Largest sum of the names of one update; further names go into the next.

    Attributes:
        watched: The watched set of names; None until it is built.
    """

    def __init__(self, sender: WatchSender, totals: WatchTotals, max_update_bytes: int) -> None:
        self.sender = sender
        self.watched: WatchedSet | None = None
        self._totals = totals
        self._max_update_bytes = max_update_bytes
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<watcher {self.sender.watcher_id} of {self.sender.cnx.peer}>"

    def watch(self, watched: WatchedSet) -> None:
        """Become a watcher of a set, which then receives its changes."""
        self.watched = watched
        watched.watchers[self] = None

    async def answer(self, request_id: int, known_hash: str | None) -> None:
        """Answer a client's request for the watch with the present names of the set.

        Args:
            request_id: The id that the client chose for its request.
            known_hash: Hash of the client's names; a matching hash saves sending the names.

        Raises:
            PermitTooLargeError: The answer is larger than the limit for direct memory.
        """
        async with self._answering():
            names = self._begin()
            sent = EMPTY_NAMES if names.hash == known_hash else names
            await self.sender.send_success(request_id, sent, self._encoded, names.hash)
            self._answered(names)

    async def answer_with_nothing(self, request_id: int) -> None:
        """Answer a client's request without names; see WatchProfile.second_request_empties."""
        async with self._answering():
            await self.sender.send_success(request_id, EMPTY_NAMES, self._encoded, EMPTY_NAMES.hash)

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Hold back updates while the ``with`` block runs, then send them, even after an error."""
        try:
            async with self._lock:
                yield
        finally:
            if self.watched is not None:
                self._go_on()

    def close(self) -> None:
        """Stop sending to the client, and stop watching the set."""
        self.sender.closed = True
        if self.watched is not None:
            self.watched.watchers.pop(self, None)
        if self._task is not None:
            self._task.cancel()

    def give_up(self) -> None:
        """Close the client's connection, as the names are unknown, so that it reconnects."""
        self.sender.cnx.close()

    @abstractmethod
    def changed(self, update: SetUpdate) -> None:
        """Send the client an update of the set, now or later."""

    @abstractmethod
    def fell_behind(self) -> None:
        """Send the client all changes that it missed, as the last was too large for one update."""

    @abstractmethod
    def _begin(self) -> SortedNames:
        """Return the names to answer with; later changes are sent after the answer."""

    @abstractmethod
    def _answered(self, names: SortedNames) -> None:
        """Record which version of the set the client was sent as an answer."""

    @abstractmethod
    def _go_on(self) -> None:
        """Send the changes that were made since the set was answered."""

    def _start(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        if self._task is None and not self.sender.closed:
            self._task = asyncio.get_running_loop().create_task(work())
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("closing %s after an internal error", self, exc_info=error)
            self.give_up()
        elif not self.sender.closed:
            self._go_on()  # Changes after the task's last check found it still running.

    async def _encoded(self, names: SortedNames) -> EncodedNames:
        return await self._the_set().encoded.of(names) if len(names) else EncodedNames(names, ())

    def _the_set(self) -> WatchedSet:
        if self.watched is None:
            raise RuntimeError("the watcher has no set yet")
        return self.watched


class OrderedWatcher(TopicListWatcher):
    """The watcher of profile pulsar, which sends all updates in order, from a bounded queue.

    Args:
        list_again: Called after the queue overflowed and was emptied.

    The mutable state is the queue.
    """

    def __init__(
        self,
        sender: WatchSender,
        totals: WatchTotals,
        max_update_bytes: int,
        list_again: Callable[[], object],
    ) -> None:
        super().__init__(sender, totals, max_update_bytes)
        self._list_again = list_again
        self._queued: deque[SetUpdate] = deque()

    def changed(self, update: SetUpdate) -> None:
        """Send the client an update, after all updates that are queued."""
        if self.sender.closed:
            return
        idle = not self._queued and self._task is None and not self._lock.locked()
        if idle and self.sender.send_alone(update):
            return
        if len(self._queued) >= MAX_QUEUED_UPDATES:
            self._queued.clear()
            self._totals.relistings += 1
            self._list_again()
            return
        self._queued.append(update)
        self._go_on()

    def fell_behind(self) -> None:
        """Do nothing, as the profile sends an update for every name."""

    def _begin(self) -> SortedNames:
        self._queued.clear()
        return self._the_set().names

    def _answered(self, names: SortedNames) -> None:
        """Do nothing, as changes since the answer are in the queue."""

    def _go_on(self) -> None:
        if self._queued and not self._lock.locked():
            self._start(self._send_queued)

    async def _send_queued(self) -> None:
        while self._queued:
            async with self._lock:
                if self._queued:  # An answer may have emptied the queue meanwhile.
                    await self.sender.send(self._queued.popleft())


class LatestWatcher(TopicListWatcher):
    """The watcher of profile floodgate, which sends a slow client all missed changes together.

    The mutable state is the client's version.
    """

    def __init__(self, sender: WatchSender, totals: WatchTotals, max_update_bytes: int) -> None:
        super().__init__(sender, totals, max_update_bytes)
        self._told: SortedNames | None = None

    def changed(self, update: SetUpdate) -> None:
        """Send the client an update, if possible without waiting; otherwise catch up later."""
        told = self._told
        if told is None or self.sender.closed:
            return
        up_to_date = told is update.before and self._task is None and not self._lock.locked()
        if up_to_date and self._send_at_once(update):
            self._told = update.after
        elif told.identity != update.after.identity:
            self._go_on()

    def fell_behind(self) -> None:
        """Send the client all changes that it missed, as the last was too large for one update."""
        if self._told is not None and not self.sender.closed:
            self._go_on()

    def _send_at_once(self, update: SetUpdate) -> bool:
        small = update.command.body_bytes <= self._max_update_bytes
        return small and self.sender.send_at_once(update)

    def _begin(self) -> SortedNames:
        return self._the_set().names

    def _answered(self, names: SortedNames) -> None:
        self._told = names

    def _go_on(self) -> None:
        if self._is_behind and not self._lock.locked():
            self._start(self._catch_up)

    @property
    def _is_behind(self) -> bool:
        names = self._the_set().names
        return self._told is not None and self._told.identity != names.identity

    async def _catch_up(self) -> None:
        reconciler = self._the_set().reconciler
        self._totals.lagging += 1
        reconciler.fell_behind()
        try:
            while self._is_behind:
                if not self.sender.cnx.writable:
                    await self._writable()
                async with self._lock:
                    await self._reconcile()
        finally:
            self._totals.lagging -= 1
            reconciler.caught_up()

    async def _writable(self) -> None:
        """Wait until the connection's outbound buffer accepts more bytes."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        outbound = self.sender.cnx.outbound
        outbound.on_writable(wake)
        try:
            await woken
        finally:
            outbound.forget_listener(wake)

    async def _reconcile(self) -> None:
        """Send the client an update with the changes that it missed, as many as may be in one."""
        told, watched = self._told, self._the_set()
        if told is None or told.identity == watched.names.identity:
            return
        newest = watched.names
        update = await watched.reconciler.update(told, newest, self._max_update_bytes)
        if update is None:
            self._told = newest  # The same names: added and removed again.
            return
        self._totals.reconciling += 1
        await self.sender.send(update)
        self._told = update.after
