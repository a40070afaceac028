"""A watched namespace, which turns changes of its topics into updates for watchers.

The names are read once, for the first watch; from then on the store's feed delivers changes. After
a missed change (a gap, a long change, a lost connection to the store) the namespace is listed again
and compared. Long work pauses after each step.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from broker.patterns.index import PatternIndex
from broker.stores.changes import StoreError
from broker.watches.names.merging import differences
from broker.watches.names.sorted_names import (
    EMPTY_NAMES,
    NameChanges,
    SortedNames,
    SortedNamesBuilder,
)
from broker.watches.sets.changing import (
    LARGE_CHANGE_NAMES,
    ChangeMatching,
    LargeChange,
    SetDifferences,
    each_name,
    matching_for,
)
from broker.watches.sets.set_builder import SetBuilder
from broker.watches.sets.watched_sets import SharedChange, WatchedSets
from broker.watches.update_permit import UpdatePermit
from limiter.backoff import Backoff
from limiter.clock import clock_sleep
from limiter.single_flight import SingleFlight
from proto.topic_hash import in_java_order

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import TypeAlias

    from broker.stores.changes import Change
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from broker.watches.context import WatchContext
    from broker.watches.sets.watched_sets import SetWatcher, WatchedSet
    from broker.watches.update_permit import SetUpdate
    from proto.names import NamespaceName

    _Updates: TypeAlias = Sequence[tuple[WatchedSet, SetUpdate | None]]
    """Changed sets, each with an update for its watchers; None if too large for one update."""

logger = logging.getLogger(__name__)

MAX_PENDING_CHANGES = 10_000
"""Queue length of pending changes; beyond, the namespace is listed again."""
SETS_A_STEP = 64
"""Sets changed in one step, about 30 us each."""
WATCHERS_A_STEP = 512
"""Watchers notified in one step, about 10 us each."""


class NamespaceWatch:
    """The watched sets of one namespace; a task updates them when its topics change.

    Attributes:
        users: Number of watchers, and of requests about to create watchers.

    The mutable state is the sets, their version, and the pending changes.
    """

    def __init__(self, namespace: NamespaceName, context: WatchContext) -> None:
        self.namespace = namespace
        self.users = 0
        self.sets = WatchedSets()
        self._context = context
        self._index: PatternIndex[WatchedSet] = PatternIndex()
        self._version = 0
        self._pending: deque[Change] = deque()
        self._behind = False
        self._arrived = asyncio.Event()
        # Held while sets change and while a set is added, so that no set misses a change.
        self._lock = asyncio.Lock()
        self._builder = SetBuilder(namespace, context, self.sets, self._index, self._lock)
        self._reading = SingleFlight[None]()
        self._follower: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------

    async def read(self) -> None:
        """Read the namespace's topic names from the store, once for all concurrent callers.

        Does nothing if they are in memory.

        Raises:
            StoreError: The store cannot be read.
        """
        if not self.is_read:
            await self._reading.join(None, self._read)

    async def _read(self) -> None:
        snapshot = await self._context.store.snapshot(self.namespace)
        self.sets.everything = await self._context.steps.take(_names_of(snapshot))
        self._version = snapshot.version if snapshot is not None else 0
        self._follower = asyncio.get_running_loop().create_task(self._follow())

    def stop(self) -> None:
        """Stop following the namespace's changes, and free its names."""
        self._builder.stop()
        self._reading.stop()
        follower, self._follower = self._follower, None
        if follower is not None:
            # The task's final exception keeps a frame with all names: drop all references to the
            # task.
            follower.cancel()
        everything, self.sets.everything = self.sets.everything, EMPTY_NAMES
        self._context.disposal.free(everything)

    @property
    def is_read(self) -> bool:
        """True if the namespace's topic names are in memory."""
        return self._follower is not None

    def push(self, change: Change) -> None:
        """Queue a change of the namespace that the store's feed delivered."""
        if len(self._pending) >= MAX_PENDING_CHANGES:
            self._pending.clear()
            self._behind = True
        self._pending.append(change)
        self._arrived.set()

    def fall_behind(self) -> None:
        """Make the namespace be listed again, as a change of it was missed."""
        self._behind = True
        self._arrived.set()

    # -- sets ---------------------------------------------------------------------------------

    async def watched_set(self, pattern: str) -> WatchedSet:
        """Return the set of the names that match a pattern, built once for all callers.

        Raises:
            InvalidPatternError: The pattern takes too long.
            StoreError: The store cannot be read.
        """
        await self.read()
        return self.sets.get(pattern) or await self._builder.build(pattern)

    def leave(self, watched: WatchedSet) -> None:
        """Drop a watched set if it has no watchers any more."""
        self._builder.leave(watched)

    # -- changes ------------------------------------------------------------------------------

    async def _follow(self) -> None:
        backoff = Backoff()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            try:
                await self._catch_up()
            except StoreError as error:
                # Published updates stay true of their version; the rest follows later.
                logger.warning("following %s is interrupted: %s", self.namespace, error)
                self._behind = True
                await clock_sleep(self._context.clock, backoff.next())
                self._arrived.set()
            except Exception:
                logger.exception("following %s failed; it is listed again", self.namespace)
                self._behind = True
                await clock_sleep(self._context.clock, backoff.next())
                self._arrived.set()
            else:
                backoff.reset()

    async def _catch_up(self) -> None:
        while self._pending or self._behind:
            change = self._pending.popleft() if self._pending else None
            if change is not None and change.complete and change.version <= self._version:
                continue  # The snapshot read was newer.
            in_order = change is not None and change.version == self._version + 1
            if self._behind or change is None or not change.complete or not in_order:
                await self._list_again()
                continue
            await self._apply(change.added, change.removed)
            self._version = change.version

    async def _list_again(self) -> None:
        """List the namespace again, as changes were missed, and apply the differences found."""
        snapshot = await self._context.store.snapshot(self.namespace)
        self._context.totals.relistings += 1
        names = snapshot.persistent.names() if snapshot is not None else iter(())
        found = await self._context.steps.take(differences(self.sets.everything.names(), names))
        await self._apply_found(found)
        self._version = snapshot.version if snapshot is not None else 0
        self._behind = False

    async def _apply_found(self, found: NameChanges) -> None:
        """Apply the differences that listing the namespace again has found."""
        many = len(found.added) + len(found.removed) > LARGE_CHANGE_NAMES
        if many and not self._context.profile.one_by_one:
            await self._apply_many(found)
        else:
            await self._apply_together(list(each_name(found.added, found.removed)))

    async def _apply(self, added: Sequence[bytes], removed: Sequence[bytes]) -> None:
        """Apply a change to the names of the namespace and its sets, and notify the watchers."""
        names = list(each_name(added, removed))
        if self._context.profile.one_by_one:
            await self._apply_one_by_one(names)
        elif len(names) > LARGE_CHANGE_NAMES:
            await self._apply_many(
                NameChanges(
                    in_java_order(name for name, came in names if came),
                    in_java_order(name for name, came in names if not came),
                )
            )
        else:
            await self._apply_together(names)

    async def _apply_together(self, names: Sequence[tuple[bytes, bool]]) -> None:
        """Apply a change name by name, then send each set's watchers a single update."""
        changed = SetDifferences()
        try:
            async with self._lock:
                matching = await self._matching([name for name, _ in names])
                await self._context.steps.take(self._changing(names, matching, changed))
        finally:
            # Even after an error: listing again will find no difference in these sets.
            permit = UpdatePermit()
            await self._tell(changed.updates(permit), permit)

    async def _apply_one_by_one(self, names: Sequence[tuple[bytes, bool]]) -> None:
        """Apply a change name by name; after each name send an update to the watchers."""
        async with self._lock:
            # Matched together: a backtracking engine runs in a worker process.
            matching = await self._matching([name for name, _ in names])
            for one in names:
                changed, permit = SetDifferences(), UpdatePermit()
                try:
                    await self._context.steps.take(self._changing([one], matching, changed))
                finally:
                    await self._tell(changed.updates(permit), permit)

    async def _matching(self, names: Sequence[bytes]) -> ChangeMatching:
        index, pattern_filter = self._index, self._context.pattern_filter
        steps = self._context.steps
        return await matching_for(names, index, pattern_filter, self._give_up, steps)

    async def _apply_many(self, names: NameChanges) -> None:
        """Apply a large change to each set as a whole; its watchers then build one update."""
        async with self._lock:
            matching = await self._matching([*names.added, *names.removed])
            change = LargeChange(self.sets, matching, self._builder.touched)
            changed = await change.apply(names, self._context.steps)
        await self._tell([(watched, None) for watched in changed], UpdatePermit())

    def _changing(
        self,
        names: Sequence[tuple[bytes, bool]],
        matching: ChangeMatching,
        changed: SetDifferences,
    ) -> Generator[None, None, None]:
        """Add or remove names in the namespace and its sets; a generator of steps."""
        for name, came in names:
            self._builder.touched(name)
            sets, done = matching.of(name), SharedChange()
            for start in range(0, max(1, len(sets)), SETS_A_STEP):
                some = sets[start : start + SETS_A_STEP]
                versions = [one.names for one in some]
                self.sets.change(name, some, added=came, done=done)
                changed.note(name, some, versions, came=came)
                yield

    async def _tell(self, updates: _Updates, permit: UpdatePermit) -> None:
        try:
            await self._context.steps.take(_telling(updates, permit))
        finally:
            permit.all_told()

    def _give_up(self, watched: WatchedSet) -> None:
        """Close the connections that watch a set, as its pattern takes too long to match."""
        logger.warning("%s: %r takes too long on a change", self.namespace, watched.pattern)
        for watcher in tuple(watched.watchers):
            watcher.give_up()


def _telling(updates: _Updates, permit: UpdatePermit) -> Generator[None, None, None]:
    """Pass updates to the watchers of changed sets; yields after every few watchers."""
    step = 0
    for watched, update in updates:
        for watcher in tuple(watched.watchers):
            if watcher in watched.watchers:  # May have been closed during a pause.
                _tell_one(watcher, update)
            step += 1
            if step % WATCHERS_A_STEP == 0:
                permit.flush()
                yield


def _tell_one(watcher: SetWatcher, update: SetUpdate | None) -> None:
    """Pass an update to one watcher; an error closes only its connection."""
    try:
        if update is None:
            watcher.fell_behind()
        else:
            watcher.changed(update)
    except Exception:
        logger.exception("closing %r after an internal error", watcher)
        watcher.give_up()


def _names_of(snapshot: NamespaceSnapshot | None) -> Generator[None, None, SortedNames]:
    builder = SortedNamesBuilder()
    if snapshot is not None:
        for block in snapshot.persistent.blocks():
            builder.extend(block.names())
            yield
    return (yield from builder.finishing())
