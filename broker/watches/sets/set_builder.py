"""Building of a watched set while topics of its namespace are created and deleted.

A set is built from the store's newest snapshot, which may be ahead of the changes applied to the
namespace, or behind them at the end. So every name added or removed meanwhile is looked up again in
the namespace, under the lock of changes; from then on changes include the set.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.patterns.pattern import MatchAll, compile_pattern
from broker.topic_lists.sequence import TopicListing, TopicSequence
from broker.watches.names.merging import differences, merged
from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames, SortedNamesBuilder
from limiter.single_flight import SingleFlight
from proto.topic_hash import in_java_order

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.patterns.index import PatternIndex
    from broker.watches.context import WatchContext
    from broker.watches.sets.watched_sets import WatchedSet, WatchedSets
    from proto.names import NamespaceName

PERSISTENT_MODE = pb.CommandGetTopicsOfNamespace.PERSISTENT
SETS_AT_A_TIME = 4
"""Sets of a namespace built concurrently: more would delay all of them."""
NAMES_A_STEP = 64
"""Names resolved to the namespace's objects in one step, up to 10 us each."""
CHANGES_A_STEP = 32
"""Names added to or removed from a version in one step, about 25 us each."""
MOST_SHARED = 8
"""A set with all but 1 / MOST_SHARED of its namespace's names shares the namespace's nodes."""
FEW_CHANGES = 32
"""If less than 1 / FEW_CHANGES is missing, names are removed one by one, to share more nodes."""


class SetBuilder:
    """Builds a namespace's watched sets, each once for all requests that wait for it.

    Bound: one build for each awaited pattern; the recorded names are the namespace's objects.
    """

    def __init__(
        self,
        namespace: NamespaceName,
        context: WatchContext,
        sets: WatchedSets,
        index: PatternIndex[WatchedSet],
        lock: asyncio.Lock,
    ) -> None:
        self._namespace = namespace
        self._context = context
        self._implementation = context.pattern_filter.rules.implementation
        self._sets = sets
        self._index = index
        self._lock = lock
        self._room = asyncio.Semaphore(SETS_AT_A_TIME)
        self._builds = SingleFlight["WatchedSet"]()
        # Names added or removed since the start of a pattern's build.
        self._touched: dict[str, set[bytes]] = {}

    def stop(self) -> None:
        """Cancel the building of all sets of the namespace."""
        self._builds.stop()

    def touched(self, name: bytes) -> None:
        """Record a changed name, which each running build checks again at its end."""
        for touched in self._touched.values():
            touched.add(name)

    async def build(self, pattern: str) -> WatchedSet:
        """Build and return the set of a pattern; cancelled when all its callers are.

        Raises:
            InvalidPatternError: The pattern takes too long.
            StoreError: The store cannot be read.
        """
        try:
            return await self._builds.join(pattern, partial(self._build, pattern))
        except asyncio.CancelledError:
            # The build may have just finished.
            if (watched := self._sets.get(pattern)) is not None:
                self.leave(watched)
            raise

    def leave(self, watched: WatchedSet) -> None:
        """Drop a watched set if it has no watchers any more."""
        if not watched.watchers and self._sets.get(watched.pattern) is watched:
            self._index.discard(watched)
            if self._sets.discard(watched):
                self._context.disposal.free(watched.names)

    async def _build(self, pattern: str) -> WatchedSet:
        everything = isinstance(compile_pattern(pattern, self._implementation), MatchAll)
        touched = set[bytes]()
        self._touched[pattern] = touched
        try:
            names = self._sets.everything
            if not everything:
                async with self._room:
                    names = await self._kept(pattern)
            async with self._lock:
                if everything:
                    names = self._sets.everything
                elif touched:
                    names = await self._updated(pattern, names, touched)
                names = await self._context.steps.take(self._sets.like(names))
                watched = self._sets.add(pattern, names)
                self._index.add(watched, pattern, self._implementation)
        finally:
            # A later build of the pattern may have begun before this build's end.
            if self._touched.get(pattern) is touched:
                del self._touched[pattern]
        return watched

    async def _kept(self, pattern: str) -> SortedNames:
        """Return those names in the store's newest snapshot of the namespace that match a pattern.

        They are the namespace's own name objects where it has the names.
        """
        snapshot = await self._context.store.snapshot(self._namespace)
        if snapshot is None:
            return EMPTY_NAMES
        listing = snapshot.listing(PERSISTENT_MODE)
        kept = await self._context.pattern_filter.filter(listing, pattern)
        base = self._sets.everything
        most = len(kept) > len(base) - len(base) // MOST_SHARED
        return await self._context.steps.take((_out_of if most else _as_objects_of)(base, kept))

    async def _updated(self, pattern: str, names: SortedNames, touched: set[bytes]) -> SortedNames:
        """Return a new set, corrected for the names that changed while it was being built."""
        everything = self._sets.everything
        there = in_java_order(name for name in touched if name in everything)
        listing = TopicListing(TopicSequence.from_sorted(there))
        kept = await self._context.pattern_filter.filter(listing, pattern)
        matching = [name for sequence in kept.sequences for name in sequence.names()]
        came = everything.own_objects(matching)
        went = in_java_order(touched.difference(matching))
        return await self._context.steps.take(merged(names, came, went))


def _out_of(base: SortedNames, listing: TopicListing) -> Generator[None, None, SortedNames]:
    """Return a set of nearly all names of ``base``, which shares most of its tree; in steps.

    A later change of a shared node is computed once for all its sets.
    """
    names = chain.from_iterable(sequence.names() for sequence in listing.sequences)
    changes = yield from differences(base.names(), names)
    if len(changes.added) + len(changes.removed) > len(base) // FEW_CHANGES:
        return (yield from merged(base, changes.added, changes.removed))
    for step, name in enumerate(changes.removed, 1):
        base = base.without_name(name)
        if step % CHANGES_A_STEP == 0:
            yield
    for step, name in enumerate(changes.added, 1):
        base = base.with_name(name)
        if step % CHANGES_A_STEP == 0:
            yield
    return base


def _as_objects_of(base: SortedNames, listing: TopicListing) -> Generator[None, None, SortedNames]:
    """Return a set of a list's names, as objects of ``base`` where it has them; in steps."""
    builder = SortedNamesBuilder()
    for sequence in listing.sequences:
        for block in sequence.blocks():
            names = block.names()
            for start in range(0, len(names), NAMES_A_STEP):
                builder.extend(base.own_objects(names[start : start + NAMES_A_STEP]))
                yield
    return (yield from builder.finishing())
