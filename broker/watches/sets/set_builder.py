"""Makes the first version of watched sets, while their namespace goes on changing.

A set is made from the store's newest snapshot, which may be ahead of what the namespace's follower
has applied, or behind it at the end. So every name that was touched meanwhile is brought, under the
lock that changes take, to what the namespace says of it then; from there on changes find the set.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.patterns.pattern import compile_pattern
from broker.topic_lists.listing import TopicListing
from broker.topic_lists.sequence import TopicSequence
from broker.watches.names.merging import differences, merged
from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames, SortedNamesBuilder
from proto.topic_hash import in_java_order

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.patterns.index import PatternIndex
    from broker.watches.sets.context import FollowingContext
    from broker.watches.sets.watched_sets import WatchedSet, WatchedSets
    from proto.names import NamespaceName

PERSISTENT_MODE = pb.CommandGetTopicsOfNamespace.PERSISTENT
SETS_AT_A_TIME = 4
"""Sets of a namespace that are made at a time: of more all would be half done for long."""
NAMES_A_STEP = 64
"""Names of which the namespace's objects are looked up in a step, up to 10 us each."""
CHANGES_A_STEP = 32
"""Names by which a version is changed in a step, about 25 us each."""
MOST_SHARED = 8
"""A set that lacks less than this part of its namespace is made from the namespace's own nodes."""
FEW_CHANGES = 32
"""Less than this part is taken out name by name, so that more nodes are shared."""


class _Making:
    """One set that is being made, and how many wait for it."""

    __slots__ = ("task", "touched", "waiting")

    def __init__(self) -> None:
        self.touched: set[bytes] = set()
        self.waiting = 0
        self.task: asyncio.Task[WatchedSet]


class SetBuilder:
    """Makes the sets of one namespace, each once for all who ask for it.

    Bound: one making a pattern that somebody waits for; the names it notes are the namespace's.

    Args:
        namespace: Which one.
        parts: What it works with.
        sets: Where sets are put.
        index: Which patterns a name is matched against.
        turn: Held while sets change.
    """

    def __init__(
        self,
        namespace: NamespaceName,
        parts: FollowingContext,
        sets: WatchedSets,
        index: PatternIndex[WatchedSet],
        turn: asyncio.Lock,
    ) -> None:
        self._namespace = namespace
        self._parts = parts
        self._sets = sets
        self._index = index
        self._turn = turn
        self._room = asyncio.Semaphore(SETS_AT_A_TIME)
        self._making: dict[str, _Making] = {}

    def stop(self) -> None:
        """Make nothing more."""
        for making in self._making.values():
            making.task.cancel()

    def touched(self, name: bytes) -> None:
        """A name came or went; whoever makes a set looks at it once more."""
        for making in self._making.values():
            making.touched.add(name)

    async def made(self, pattern: str) -> WatchedSet:
        """Return a pattern's set, made with all who ask for it; when all have left, not at all.

        Raises:
            InvalidPatternError: The pattern takes too long.
            StoreError: The store cannot be read.
        """
        making = self._making.get(pattern) or self._begin(pattern)
        making.waiting += 1
        try:
            return await asyncio.shield(making.task)
        except asyncio.CancelledError:
            if making.waiting == 1:
                self._abandon(pattern, making)
            raise
        finally:
            making.waiting -= 1

    def _begin(self, pattern: str) -> _Making:
        making = self._making[pattern] = _Making()
        making.task = asyncio.get_running_loop().create_task(self._make(pattern, making))
        making.task.add_done_callback(lambda _: self._ended(pattern, making))
        return making

    def _forget(self, pattern: str, making: _Making) -> None:
        if self._making.get(pattern) is making:
            del self._making[pattern]

    def _ended(self, pattern: str, making: _Making) -> None:
        self._forget(pattern, making)
        if not making.task.cancelled():
            making.task.exception()  # Told to those who waited, if any were left.

    def _abandon(self, pattern: str, making: _Making) -> None:
        """Nobody wants the set any more: it may be finished by now. Nobody may join its end."""
        self._forget(pattern, making)
        if not making.task.done():
            making.task.cancel()
        elif not making.task.cancelled() and making.task.exception() is None:
            self.leave(making.task.result())

    def leave(self, watched: WatchedSet) -> None:
        """Forget a set if nobody watches it any more."""
        if not watched.watchers and self._sets.get(watched.pattern) is watched:
            self._sets.discard(watched)
            self._index.discard(watched)

    async def _make(self, pattern: str, making: _Making) -> WatchedSet:
        everything = compile_pattern(pattern, self._parts.implementation).matches_all
        names = self._sets.everything
        if not everything:
            async with self._room:
                names = await self._kept(pattern)
        async with self._turn:
            if everything:
                names = self._sets.everything
            elif making.touched:
                names = await self._brought_up(pattern, names, making.touched)
            names = await self._parts.steps.take(self._sets.like(names))
            watched = self._sets.add(pattern, names)
            self._index.add(watched, pattern, self._parts.implementation)
            self._making.pop(pattern, None)
        return watched

    async def _kept(self, pattern: str) -> SortedNames:
        """Return what a pattern keeps of the newest snapshot, as the namespace's name objects."""
        snapshot = await self._parts.store.snapshot(self._namespace)
        if snapshot is None:
            return EMPTY_NAMES
        listing = snapshot.listing(PERSISTENT_MODE)
        kept = await self._parts.pattern_filter.filter(listing, pattern)
        base = self._sets.everything
        most = len(kept) > len(base) - len(base) // MOST_SHARED
        return await self._parts.steps.take((_out_of if most else _as_objects_of)(base, kept))

    async def _brought_up(
        self, pattern: str, names: SortedNames, touched: set[bytes]
    ) -> SortedNames:
        """Bring the names that were touched meanwhile to what the namespace says of them now."""
        everything = self._sets.everything
        there = in_java_order(name for name in touched if name in everything)
        listing = TopicListing(TopicSequence.from_sorted(there))
        kept = await self._parts.pattern_filter.filter(listing, pattern)
        matching = [name for sequence in kept.sequences for name in sequence.names()]
        came = everything.own_objects(matching)
        went = in_java_order(touched.difference(matching))
        return await self._parts.steps.take(merged(names, came, went))


def _out_of(base: SortedNames, listing: TopicListing) -> Generator[None, None, SortedNames]:
    """Return the names of a listing that has nearly all of ``base``, sharing its nodes, in steps.

    What a name changes in shared nodes is made once for all sets that have them.
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
    """Return the names of a listing, where ``base`` has them as its objects, in steps."""
    builder = SortedNamesBuilder()
    for sequence in listing.sequences:
        for block in sequence.blocks():
            names = block.names()
            for start in range(0, len(names), NAMES_A_STEP):
                builder.extend(base.own_objects(names[start : start + NAMES_A_STEP]))
                yield
    return (yield from builder.finishing())
