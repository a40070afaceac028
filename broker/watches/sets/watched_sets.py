"""The watched sets of one namespace: one for each pattern, however many watch it.

Sets refer to the namespace's name objects; equal sets are one. A change of a name costs each set it
belongs to one path of its tree, and one update serves all watchers of a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames
from broker.watches.sets.encoded_names import EncodedVersions
from broker.watches.sets.held_versions import HeldVersions
from broker.watches.sets.reconciler import Reconciler

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from broker.watches.names.nodes import ChangedNodes
    from broker.watches.update_permit import SetUpdate

SET_BYTES = 2_048
"""Memory of a set beside its version, most of it for its pattern in the index."""
NAME_OBJECT_BYTES = 33
"""Memory that Python adds to a name's bytes."""


class SetWatcher(Protocol):
    """A watcher of a set, as its namespace sees it."""

    def changed(self, update: SetUpdate) -> None:
        """Send an update of the set, now or later."""

    def fell_behind(self) -> None:
        """Catch up with the set: it has changed by more than one update may hold."""

    def give_up(self) -> None:
        """End: the set cannot be known any more."""


class WatchedSet:
    """The names of a namespace that match one pattern.

    Attributes:
        pattern: The pattern without its domain.
        names: The newest version.
        watchers: Its watchers, in the order in which they came.
        encoded: Encodes versions for all sets of the namespace.
        reconciler: Makes updates for watchers that are behind.
    """

    __slots__ = ("encoded", "names", "pattern", "reconciler", "watchers")

    def __init__(self, pattern: str, names: SortedNames, encoded: EncodedVersions) -> None:
        self.pattern = pattern
        self.names = names
        self.watchers: dict[SetWatcher, None] = {}
        self.encoded = encoded
        self.reconciler = Reconciler()

    def __repr__(self) -> str:
        return f"<WatchedSet {self.pattern!r}, {len(self.names)} names>"


class SharedChange:
    """Versions and nodes after one name was added or removed, each made once for all sets.

    Equal sets stay one, and sets that were made from the same nodes go on sharing them.
    """

    __slots__ = ("nodes", "versions")

    def __init__(self) -> None:
        # By identity; the versions themselves, so that none can end meanwhile.
        self.versions: dict[int, tuple[SortedNames, SortedNames]] = {}
        self.nodes: ChangedNodes = {}


class WatchedSets:
    """All watched sets of a namespace, and all its names, which they share.

    The mutable state is the sets by pattern. Bound: floodgateTopicWatchMaxBytes, checked before a
    set is added.
    """

    def __init__(self, everything: SortedNames = EMPTY_NAMES) -> None:
        self._everything = everything
        self._versions = HeldVersions()
        self._versions.hold(everything)
        self._by_pattern: dict[str, WatchedSet] = {}
        self._encoded = EncodedVersions()

    @property
    def everything(self) -> SortedNames:
        """All persistent user topics of the namespace."""
        return self._everything

    @everything.setter
    def everything(self, names: SortedNames) -> None:
        self._versions.exchange(self._everything, names)
        self._everything = names

    def __len__(self) -> int:
        return len(self._by_pattern)

    def __iter__(self) -> Iterator[WatchedSet]:
        return iter(self._by_pattern.values())

    def get(self, pattern: str) -> WatchedSet | None:
        """Return the set of a pattern, if there is one."""
        return self._by_pattern.get(pattern)

    def add(self, pattern: str, names: SortedNames) -> WatchedSet:
        """Add the set of a pattern."""
        watched = self._by_pattern[pattern] = WatchedSet(pattern, names, self._encoded)
        self._versions.hold(names)
        return watched

    def replace(self, watched: WatchedSet, names: SortedNames) -> None:
        """Give a set its next version; one that was dropped meanwhile costs nothing."""
        if self._by_pattern.get(watched.pattern) is watched:
            self._versions.exchange(watched.names, names)
        watched.names = names

    def discard(self, watched: WatchedSet) -> bool:
        """Drop a set that nobody watches; return whether no other set has its version."""
        if self._by_pattern.pop(watched.pattern, None) is None:
            return False
        return self._versions.release(watched.names)

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return a version that is there already and holds the same names, or these; in steps."""
        return self._versions.like(names)

    @property
    def held_bytes(self) -> int:
        """Memory of names and sets, about; what sets share counts once."""
        if not self._by_pattern:
            return 0
        names_bytes = self._everything.name_bytes + NAME_OBJECT_BYTES * len(self._everything)
        return names_bytes + self._versions.own_bytes + SET_BYTES * len(self._by_pattern)

    def change(
        self,
        name: bytes,
        watched: Iterable[WatchedSet],
        *,
        added: bool,
        done: SharedChange | None = None,
    ) -> list[WatchedSet]:
        """Add or remove one name, in the namespace and in the sets whose pattern keeps it.

        Args:
            name: The name.
            watched: Those sets, or some of them.
            added: Whether it is added or removed.
            done: The same object in all calls for the same name.

        Returns:
            The sets that differ now.
        """
        done = done or SharedChange()
        self.everything = _changed(self.everything, name, done, added=added)
        different = []
        for one in watched:
            before = one.names
            after = _changed(before, name, done, added=added)
            if after is not before:
                self.replace(one, after)
                different.append(one)
        return different


def _changed(names: SortedNames, name: bytes, done: SharedChange, *, added: bool) -> SortedNames:
    """Return a version with a name added or removed, made once for all sets that have it."""
    known = done.versions.get(names.identity)
    if known is None:
        change = names.with_name if added else names.without_name
        after = change(name, done.nodes)
        done.versions[names.identity] = (names, after)
    else:
        after = known[1]
    return names if after.identity == names.identity else after
