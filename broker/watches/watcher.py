"""One watcher: what it has been told of its set, and what it is told next.

Two kinds. As shipped each change is queued for each watcher, and after 10,000 the queue is emptied
without a word. Otherwise nothing is queued: a watcher remembers which version it was told, and one
that is behind (its connection is full, a permit waits) is told all that it missed at once.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.watches.names.sorted_names import EMPTY_NAMES
from broker.watches.sets.watched_sets import EncodedNames
from proto.watch_commands import TOPIC_TAG, encode_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.sender import WatchSender
    from broker.watches.sets.totals import WatchTotals
    from broker.watches.sets.watched_sets import WatchedSet
    from broker.watches.updates.set_update import SetUpdate

logger = logging.getLogger(__name__)

MAX_QUEUED_UPDATES = 10_000
"""Updates that may wait for one watcher, as shipped (upstream: TopicListService)."""
NAMES_A_PART = 1_000
"""Names that are encoded in one turn of the loop."""


class TopicListWatcher(ABC):
    """A watch that one connection has.

    Args:
        sender: Its way out.
        totals: Counts what happens.
        max_update_bytes: Names of one update at most; what is more comes in the next.

    Attributes:
        watched: What it watches; None until that is known.
    """

    def __init__(self, sender: WatchSender, totals: WatchTotals, max_update_bytes: int) -> None:
        self.sender = sender
        self.watched: WatchedSet | None = None
        self._totals = totals
        self._max_update_bytes = max_update_bytes
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<watcher {self.sender.watcher_id} of {self.sender.cnx.peer}>"

    def watch(self, watched: WatchedSet) -> None:
        """Follow a set from now on."""
        self.watched = watched
        watched.watchers[self] = None

    async def answer(self, request_id: int, known_hash: str | None) -> None:
        """Send the set as it is: the answer to a first request, or to one that asks again.

        Args:
            request_id: The client's.
            known_hash: Hash of the names the client has; where it is right no names are sent.

        Raises:
            PermitTooLargeError: The answer is larger than the limit for direct memory.
        """
        async with self._turn_to_answer():
            names = self._begin()
            sent = EMPTY_NAMES if names.hash == known_hash else names
            await self.sender.send_success(request_id, sent, self._encoded, names.hash)
            self._answered(names)

    async def answer_with_nothing(self, request_id: int) -> None:
        """Send an empty set, as shipped where a second request has emptied it meanwhile."""
        async with self._turn_to_answer():
            await self.sender.send_success(request_id, EMPTY_NAMES, self._encoded, EMPTY_NAMES.hash)

    @asynccontextmanager
    async def _turn_to_answer(self) -> AsyncIterator[None]:
        """Tell nothing meanwhile, and then what has changed: also where the answer failed."""
        try:
            async with self._turn:
                yield
        finally:
            if self.watched is not None:
                self._go_on()

    def close(self) -> None:
        """Be told nothing more."""
        self.sender.closed = True
        if self.watched is not None:
            self.watched.watchers.pop(self, None)
        if self._task is not None:
            self._task.cancel()

    def give_up(self) -> None:
        """Give up: what it watches cannot be known any more, so the client has to begin anew."""
        self.sender.cnx.close()

    @abstractmethod
    def changed(self, update: SetUpdate) -> None:
        """The set has changed."""

    @abstractmethod
    def fell_behind(self) -> None:
        """The set has changed by more than one update may hold."""

    @abstractmethod
    def _begin(self) -> SortedNames:
        """Return the version to answer with; what comes after it is told after it."""

    @abstractmethod
    def _answered(self, names: SortedNames) -> None:
        """The client knows this version."""

    @abstractmethod
    def _go_on(self) -> None:
        """Tell what has happened meanwhile."""

    def _start(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run what has to wait, once at a time."""
        if self._task is None and not self.sender.closed:
            self._task = asyncio.get_running_loop().create_task(work())
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("closing %s after an error of ours", self, exc_info=error)
            self.give_up()
        elif not self.sender.closed:
            self._go_on()  # What came after its last look found it still there.

    async def _encoded(self, names: SortedNames) -> EncodedNames:
        """Return a version's names for the wire; all who are sent it at a time share one copy."""
        if not len(names):
            return EncodedNames(names, ())
        watched = self._the_set()
        known = watched.encoded()
        if known is not None and known.names.identity == names.identity:
            return known
        parts, batch = list[bytes](), list[bytes]()
        for leaf in names.leaves():
            batch += leaf
            if len(batch) >= NAMES_A_PART:
                parts.append(encode_names(batch, TOPIC_TAG))
                batch = []
                await asyncio.sleep(0)
        parts.append(encode_names(batch, TOPIC_TAG))
        encoded = EncodedNames(names, parts)
        watched.remember(encoded)
        return encoded

    def _the_set(self) -> WatchedSet:
        if self.watched is None:
            raise RuntimeError("the watcher has no set yet")
        return self.watched


class OrderedWatcher(TopicListWatcher):
    """As shipped: every update in its turn, a bounded queue, silence when it overflows.

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
        """Send the update, behind those that wait."""
        if self.sender.closed:
            return
        if len(self._queued) >= MAX_QUEUED_UPDATES:
            self._queued.clear()
            self._totals.relistings += 1
            self._list_again()
            return
        self._queued.append(update)
        self._go_on()

    def fell_behind(self) -> None:
        """As shipped nobody is: every name is an update of its own."""

    def _begin(self) -> SortedNames:
        self._queued.clear()
        return self._the_set().names

    def _answered(self, names: SortedNames) -> None:
        """Take note that what came after this version is in the queue."""

    def _go_on(self) -> None:
        if self._queued and not self._turn.locked():
            self._start(self._send_queued)

    async def _send_queued(self) -> None:
        while self._queued:
            async with self._turn:
                if self._queued:  # An answer whose turn came first has emptied it.
                    await self.sender.send(self._queued.popleft())


class LatestWatcher(TopicListWatcher):
    """Told what is true now: who missed something is told all of it by one update.

    The mutable state is the version it was told.
    """

    def __init__(self, sender: WatchSender, totals: WatchTotals, max_update_bytes: int) -> None:
        super().__init__(sender, totals, max_update_bytes)
        self._told: SortedNames | None = None

    def changed(self, update: SetUpdate) -> None:
        """Send the update at once if nothing is in its way; otherwise the watcher is behind."""
        told = self._told
        if told is None or self.sender.closed:
            return
        up_to_date = told is update.before and self._task is None and not self._turn.locked()
        if up_to_date and self._send_at_once(update):
            self._told = update.after
        elif told.identity != update.after.identity:
            self._go_on()

    def fell_behind(self) -> None:
        """See SetWatcher.fell_behind."""
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
        if self._is_behind and not self._turn.locked():
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
                async with self._turn:
                    await self._reconcile()
        finally:
            self._totals.lagging -= 1
            reconciler.caught_up()

    async def _writable(self) -> None:
        """Wait until the connection is; one that ends cancels this task."""
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
        """Send one update from what was told to what is true now, or as far as one can go."""
        told, watched = self._told, self._the_set()
        if told is None or told.identity == watched.names.identity:
            return
        newest = watched.names
        update = await watched.reconciler.update(told, newest, self._max_update_bytes)
        if update is None:
            self._told = newest  # What came has gone again.
            return
        self._totals.reconciling += 1
        await self.sender.send(update)
        self._told = update.after
