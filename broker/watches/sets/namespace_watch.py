"""Follows one namespace for those who watch it: the store's changes in, updates of sets out.

Names are read once, when the first watch comes; from then on the feed tells what changed. Whoever
missed a change (a gap, a long change, a lost connection to the store) lists again and compares, and
those who watch are told by one update. Long work pauses after each step.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from broker.patterns.index import PatternIndex
from broker.stores.changes import StoreError
from broker.watches.names.merging import differences
from broker.watches.names.sorted_names import NameChanges, SortedNames, SortedNamesBuilder
from broker.watches.sets.differences import SetDifferences, each_name
from broker.watches.sets.large_change import LARGE_CHANGE_NAMES, LargeChange
from broker.watches.sets.matching import ChangeMatching, matching_for
from broker.watches.sets.set_builder import SetBuilder
from broker.watches.sets.watched_sets import SharedChange, WatchedSets
from broker.watches.updates.update_permit import UpdatePermit
from limiter.backoff import Backoff
from limiter.clock import clock_sleep
from proto.topic_hash import in_java_order

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from broker.stores.feed import Change
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from broker.watches.sets.context import FollowingContext
    from broker.watches.sets.watched_sets import SetWatcher, WatchedSet
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

MAX_PENDING_CHANGES = 10_000
"""Changes that may wait to be applied; beyond them the namespace is listed again."""
SETS_A_STEP = 64
"""Sets that are changed, about 30 us each, in one turn of the loop."""
WATCHERS_A_STEP = 512
"""Watchers that are told, about 10 us each, in one turn of the loop."""


class NamespaceWatch:
    """The watched sets of one namespace, kept up to date by a task of their own.

    Attributes:
        users: Watchers, and requests that are about to become some.

    The mutable state is the sets, the version they are at, and the changes that wait.
    """

    def __init__(self, namespace: NamespaceName, parts: FollowingContext) -> None:
        self.namespace = namespace
        self.users = 0
        self.sets = WatchedSets()
        self._parts = parts
        self._index: PatternIndex[WatchedSet] = PatternIndex()
        self._version = 0
        self._pending: deque[Change] = deque()
        self._behind = False
        # Sets changed since others had their turn.
        self._steps = 0
        self._arrived = asyncio.Event()
        # Held while sets change, and while one is added: none may miss a change.
        self._turn = asyncio.Lock()
        self._maker = SetBuilder(namespace, parts, self.sets, self._index, self._turn)
        self._reading: asyncio.Task[None] | None = None
        self._follower: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------

    async def read(self) -> None:
        """Read the namespace's names, once for all who ask.

        Raises:
            StoreError: The store cannot be read.
        """
        if self._reading is None or _failed(self._reading):
            self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        snapshot = await self._parts.store.snapshot(self.namespace)
        self.sets.everything = await self._parts.steps.take(_names_of(snapshot))
        self._version = snapshot.version if snapshot is not None else 0
        self._follower = asyncio.get_running_loop().create_task(self._follow())

    def stop(self) -> None:
        """Follow the namespace no more."""
        self._maker.stop()
        for task in (self._reading, self._follower):
            if task is not None:
                task.cancel()

    @property
    def is_read(self) -> bool:
        """Whether its names are in memory."""
        return self._follower is not None

    def push(self, change: Change) -> None:
        """Take a change of the feed; it is applied in its turn."""
        if len(self._pending) >= MAX_PENDING_CHANGES:
            self._pending.clear()
            self._behind = True
        self._pending.append(change)
        self._arrived.set()

    def fall_behind(self) -> None:
        """A change was missed: list again."""
        self._behind = True
        self._arrived.set()

    # -- sets ---------------------------------------------------------------------------------

    async def watched_set(self, pattern: str) -> WatchedSet:
        """Return what a pattern keeps; made once for all who ask for it.

        Raises:
            InvalidPatternError: The pattern takes too long.
            StoreError: The store cannot be read.
        """
        await self.read()
        return self.sets.get(pattern) or await self._maker.made(pattern)

    def leave(self, watched: WatchedSet) -> None:
        """Forget a set if nobody watches it any more."""
        self._maker.leave(watched)

    # -- changes ------------------------------------------------------------------------------

    async def _follow(self) -> None:
        backoff = Backoff()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            try:
                await self._catch_up()
            except StoreError as error:
                # What was told so far stays true of its version; the rest comes when it can.
                logger.warning("%s is not followed now: %s", self.namespace, error)
                self._behind = True
                await clock_sleep(self._parts.clock, backoff.next())
                self._arrived.set()
            except Exception:
                logger.exception("following %s failed; it is listed again", self.namespace)
                self._behind = True
                await clock_sleep(self._parts.clock, backoff.next())
                self._arrived.set()
            else:
                backoff.reset()

    async def _catch_up(self) -> None:
        while self._pending or self._behind:
            change = self._pending.popleft() if self._pending else None
            if change is not None and change.complete and change.version <= self._version:
                continue  # The snapshot that was read was newer.
            in_order = change is not None and change.version == self._version + 1
            if self._behind or change is None or not change.complete or not in_order:
                await self._list_again()
                continue
            await self._apply(change.added, change.removed)
            self._version = change.version

    async def _list_again(self) -> None:
        """Compare with the newest version, whatever was missed before it."""
        snapshot = await self._parts.store.snapshot(self.namespace)
        self._parts.totals.relistings += 1
        names = snapshot.persistent.names() if snapshot is not None else iter(())
        found = await self._parts.steps.take(differences(self.sets.everything.names(), names))
        await self._apply_found(found)
        self._version = snapshot.version if snapshot is not None else 0
        self._behind = False

    async def _apply_found(self, found: NameChanges) -> None:
        """Apply what a comparison found: user topics, in Java's order."""
        many = len(found.added) + len(found.removed) > LARGE_CHANGE_NAMES
        if many and not self._parts.one_by_one:
            await self._apply_many(found)
        else:
            await self._apply(found.added, found.removed, at_once=True)

    async def _apply(
        self, added: Sequence[bytes], removed: Sequence[bytes], *, at_once: bool = False
    ) -> None:
        """Change names and sets, then tell who watches them."""
        names = list(each_name(added, removed))
        if len(names) > LARGE_CHANGE_NAMES and not (self._parts.one_by_one or at_once):
            await self._apply_many(
                NameChanges(
                    in_java_order(name for name, came in names if came),
                    in_java_order(name for name, came in names if not came),
                )
            )
            return
        changed = SetDifferences()
        try:
            async with self._turn:
                matching = await self._matching([name for name, _ in names])
                for name, came in names:
                    await self._change(name, matching.of(name), changed, came=came)
                    if self._parts.one_by_one and not at_once:
                        await self._tell(changed)
                        changed = SetDifferences()
        except Exception:
            await self._tell(changed)  # Listing again will find no difference in these.
            raise
        await self._tell(changed)

    async def _matching(self, names: Sequence[bytes]) -> ChangeMatching:
        return await matching_for(names, self._index, self._parts.pattern_filter, self._give_up)

    async def _apply_many(self, names: NameChanges) -> None:
        """Change the sets as a whole; then everybody is behind, and is told when it can be."""
        async with self._turn:
            matching = await self._matching([*names.added, *names.removed])
            change = LargeChange(self.sets, matching, self._maker.touched)
            changed = await change.apply(names, self._parts.steps)
        steps = 0
        for watched in changed:
            for watcher in tuple(watched.watchers):
                _guarded(watcher, watcher.fell_behind)
                steps += 1
                if steps % WATCHERS_A_STEP == 0:
                    await asyncio.sleep(0)

    async def _change(
        self, name: bytes, keys: Sequence[WatchedSet], changed: SetDifferences, *, came: bool
    ) -> None:
        """Add or remove one name in the namespace and its sets, some of them at a time."""
        self._maker.touched(name)
        done = SharedChange()
        for start in range(0, max(1, len(keys)), SETS_A_STEP):
            some = keys[start : start + SETS_A_STEP]
            versions = [one.names for one in some]
            self.sets.change(name, some, added=came, done=done)
            changed.note(name, some, versions, came=came)
            self._steps += 1 + len(some)
            if self._steps >= SETS_A_STEP:
                self._steps = 0
                await asyncio.sleep(0)

    async def _tell(self, changed: SetDifferences) -> None:
        permit, steps = UpdatePermit(), 0
        try:
            for watched, update in changed.updates(permit):
                for watcher in tuple(watched.watchers):
                    if watcher in watched.watchers:  # It may have been closed at a pause.
                        _guarded(watcher, watcher.changed, update)
                    steps += 1
                    if steps % WATCHERS_A_STEP == 0:
                        permit.flush()
                        await asyncio.sleep(0)
        finally:
            permit.all_told()

    def _give_up(self, watched: WatchedSet) -> None:
        """End the watches of a set whose pattern could not be evaluated in time."""
        logger.warning("%s: %r takes too long on what came", self.namespace, watched.pattern)
        for watcher in tuple(watched.watchers):
            watcher.give_up()


def _guarded(watcher: SetWatcher, tell: Callable[..., object], *what: object) -> None:
    """Tell one watcher; what breaks here ends its connection only."""
    try:
        tell(*what)
    except Exception:
        logger.exception("closing %r after an error of ours", watcher)
        watcher.give_up()


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _names_of(snapshot: NamespaceSnapshot | None) -> Generator[None, None, SortedNames]:
    """Read a namespace's persistent user topics, in steps."""
    builder = SortedNamesBuilder()
    if snapshot is not None:
        for block in snapshot.persistent.blocks():
            builder.extend(block.names())
            yield
    return (yield from builder.finishing())
