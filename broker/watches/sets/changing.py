"""Application of created and deleted topics to the watched sets of their namespace.

RE2 matches each name with all patterns in one pass. Patterns that require a backtracking engine are
matched with all names of the change in worker processes, ended on timeout. By a change of many
names each set is merged as a whole, in steps.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.patterns.errors import InvalidPatternError
from broker.topic_lists.sequence import TopicListing, TopicSequence
from broker.watches.names.merging import merged
from broker.watches.update_permit import SetUpdate
from proto.names import PERSISTENT, is_system_topic
from proto.watch_commands import encode_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from broker.patterns.filter import PatternFilter
    from broker.patterns.index import PatternIndex
    from broker.watches.names.sorted_names import NameChanges, SortedNames
    from broker.watches.sets.watched_sets import WatchedSet, WatchedSets
    from broker.watches.update_permit import UpdatePermit
    from server.tasks.cooperative import Steps


class ChangeMatching:
    """Finds the watched sets whose patterns match a name that a change adds or removes."""

    def __init__(self, index: PatternIndex[WatchedSet]) -> None:
        self._index = index
        self._backtracked: dict[bytes, list[WatchedSet]] = {}

    def of(self, name: bytes) -> list[WatchedSet]:
        """Return the watched sets whose pattern matches a name."""
        return self._index.matching(name) + self._backtracked.get(name, [])

    def noting(self, watched: WatchedSet, kept: TopicListing) -> Generator[None, None, None]:
        """Record the names that a set's pattern matches; yields after each block of names."""
        for sequence in kept.sequences:
            for block in sequence.blocks():
                for name in block.names():
                    self._backtracked.setdefault(name, []).append(watched)
                yield


async def matching_for(
    names: Sequence[bytes],
    index: PatternIndex[WatchedSet],
    pattern_filter: PatternFilter,
    give_up: Callable[[WatchedSet], object],
    steps: Steps,
) -> ChangeMatching:
    """Match all names of a change with the watched patterns.

    No set may be added to the index while the result is in use.

    Args:
        names: All names of the change.
        index: The patterns of the watched sets.
        pattern_filter: Evaluates patterns that require a backtracking engine.
        give_up: Called with a set whose pattern takes too long.
        steps: Does long work in steps.
    """
    await steps.take(index.compiling())
    matching = ChangeMatching(index)
    backtracking = index.backtracking
    if backtracking:
        listing = TopicListing(await asyncio.to_thread(TopicSequence.from_names, names))
        for watched in backtracking:
            try:
                kept = await pattern_filter.filter(listing, watched.pattern)
            except InvalidPatternError:
                give_up(watched)
            else:
                await steps.take(matching.noting(watched, kept))
    return matching


LARGE_CHANGE_NAMES = 256
"""Most names of a change applied one by one, each at the cost of a path in every set; more are
merged."""
_NAMES_A_STEP = 16
"""Names matched against all patterns in a step, up to 50 us each."""


@dataclass(slots=True)
class _Names:
    """The names that a change adds to a set, and those that it removes from it."""

    added: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)

    def note(self, name: bytes, *, came: bool) -> None:
        (self.added if came else self.removed).append(name)


@dataclass(frozen=True, slots=True)
class _Merge:
    before: SortedNames
    names: _Names
    after: SortedNames


class LargeChange:
    """A change of many names, after which each affected set is rebuilt as a whole.

    The namespace's lock is held meanwhile.
    """

    def __init__(
        self,
        sets: WatchedSets,
        matching: ChangeMatching,
        touched: Callable[[bytes], object],
    ) -> None:
        self._sets = sets
        self._matching = matching
        self._touched = touched

    async def apply(self, names: NameChanges, steps: Steps) -> list[WatchedSet]:
        """Change the names of the namespace and of its sets; return the changed sets."""
        everything = _Names(list(names.added), list(names.removed))
        by_set = await steps.take(self._by_set(everything))
        merges: list[_Merge] = []
        after = await self._merged(self._sets.everything, everything, merges, steps)
        versions = {
            watched: await self._merged(watched.names, names, merges, steps)
            for watched, names in by_set.items()
        }
        # All in one event-loop iteration: an earlier error leaves everything unchanged.
        self._sets.everything = after
        return [watched for watched, names in versions.items() if self._take(watched, names)]

    def _by_set(self, names: _Names) -> Generator[None, None, dict[WatchedSet, _Names]]:
        by_set: dict[WatchedSet, _Names] = {}
        step = 0
        for came, some in ((False, names.removed), (True, names.added)):
            for name in some:
                self._touched(name)
                for watched in self._matching.of(name):
                    by_set.setdefault(watched, _Names()).note(name, came=came)
                step += 1
                if step % _NAMES_A_STEP == 0:
                    yield
        return by_set

    async def _merged(
        self, before: SortedNames, names: _Names, merges: list[_Merge], steps: Steps
    ) -> SortedNames:
        """Return the next version of a set; equal sets with equal changes get the same object."""
        for known in merges:
            if known.before.identity == before.identity and known.names == names:
                return known.after
        after = await steps.take(merged(before, names.added, names.removed))
        merges.append(_Merge(before, names, after))
        return after

    def _take(self, watched: WatchedSet, names: SortedNames) -> bool:
        """Replace a set's names by a new version; return False if they are the same as before."""
        differs = names.fingerprint != watched.names.fingerprint
        if differs:
            self._sets.replace(watched, names)
        return differs


_PERSISTENT = f"{PERSISTENT}://".encode()


class SetDifferences:
    """Records how a change affects sets: versions before it, and names added and removed."""

    def __init__(self) -> None:
        self._by_set: dict[WatchedSet, _Difference] = {}

    def note(
        self,
        name: bytes,
        sets: Sequence[WatchedSet],
        versions: Sequence[SortedNames],
        *,
        came: bool,
    ) -> None:
        """Record an added or removed name for those sets whose version it has changed."""
        for watched, version in zip(sets, versions, strict=True):
            if watched.names is not version:
                known = self._by_set.get(watched)
                if known is None:
                    known = self._by_set[watched] = _Difference(version)
                (known.added if came else known.removed).append(name)

    def updates(self, permit: UpdatePermit) -> list[tuple[WatchedSet, SetUpdate]]:
        """Return the update for each set that changed and has watchers.

        Equal changes of several sets are encoded once.
        """
        updates = []
        encoded: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], bytes] = {}
        for watched, one in self._by_set.items():
            if watched.watchers:
                key = (tuple(one.added), tuple(one.removed))
                names = encoded.get(key)
                if names is None:
                    names = encoded[key] = encode_changes(one.added, one.removed)
                update = SetUpdate(one.before, watched.names, names, permit)
                updates.append((watched, update))
        return updates


class _Difference:
    __slots__ = ("added", "before", "removed")

    def __init__(self, before: SortedNames) -> None:
        self.before = before
        self.added: list[bytes] = []
        self.removed: list[bytes] = []


def each_name(added: Iterable[bytes], removed: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield (name, True if added) for a change's topics that can be watched, removed ones first."""
    yield from ((name, False) for name in removed if _can_be_watched(name))
    yield from ((name, True) for name in added if _can_be_watched(name))


def _can_be_watched(name: bytes) -> bool:
    return name.startswith(_PERSISTENT) and not is_system_topic(name.decode())
