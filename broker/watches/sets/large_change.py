"""A change of many names: each set is merged as a whole, in steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.watches.names.merging import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.watches.names.sorted_names import NameChanges, SortedNames
    from broker.watches.sets.matching import ChangeMatching
    from broker.watches.sets.watched_sets import WatchedSet, WatchedSets
    from server.tasks.cooperative import Steps

LARGE_CHANGE_NAMES = 256
"""Most names applied one by one, at the cost of a path in every set; more are merged."""
_NAMES_A_STEP = 16
"""Names matched against all patterns in a step, up to 50 us each."""


@dataclass(slots=True)
class _Names:
    """Names to add to and remove from one set."""

    added: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)

    def note(self, name: bytes, *, came: bool) -> None:
        (self.added if came else self.removed).append(name)


@dataclass(frozen=True, slots=True)
class _Merge:
    """The result of merging names into a version."""

    before: SortedNames
    names: _Names
    after: SortedNames


class LargeChange:
    """Many names added to or removed from a namespace's sets, under the lock of changes."""

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
        """Change the namespace and its sets; return the changed sets."""
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
        """Group the names by set."""
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
        """Return a set with its names changed; equal sets with equal changes stay shared."""
        for known in merges:
            if known.before.identity == before.identity and known.names == names:
                return known.after
        after = await steps.take(merged(before, names.added, names.removed))
        merges.append(_Merge(before, names, after))
        return after

    def _take(self, watched: WatchedSet, names: SortedNames) -> bool:
        """Set the new version of a set; tell whether it differs."""
        differs = names.fingerprint != watched.names.fingerprint
        if differs:
            self._sets.replace(watched, names)
        return differs
