"""The watched sets of a namespace: one set for each pattern, which all its watchers share.

Sets refer to the namespace's name objects; equal sets are one. A changed name costs each affected
set one path of its tree, and one update serves all watchers of a set. A held version counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.watches.names.merging import alike
from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames
from broker.watches.sets.encoded_names import EncodedVersions, Reconciler

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from broker.watches.names.nodes import ChangedNodes
    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.update_permit import SetUpdate


class _Held:
    """A version of a set, with the number of sets that have it."""

    __slots__ = ("holders", "names")

    def __init__(self, names: SortedNames) -> None:
        self.names = names
        self.holders = 0


class HeldVersions:
    """The versions that a namespace's sets have now, and the memory of these versions.

    Attributes:
        own_bytes: Memory of all versions together, without their names.

    The mutable state is the versions, indexed by identity and by CRC.
    """

    def __init__(self) -> None:
        self.own_bytes = 0
        self._held: dict[int, _Held] = {}
        self._alike: dict[int, SortedNames] = {}

    def hold(self, names: SortedNames) -> None:
        """Count one more set that has a version."""
        held = self._held.get(names.identity)
        if held is None:
            held = self._held[names.identity] = _Held(names)
            self.own_bytes += names.own_bytes
            self._alike[names.crc] = names
        held.holders += 1

    def exchange(self, before: SortedNames, after: SortedNames) -> None:
        """Count a set that has changed from version ``before`` to version ``after``."""
        known = self._held[before.identity]
        if known.holders > 1 or after.identity in self._held:
            self.hold(after)
            self.release(before)
            return
        # A fast path for a set without equals, the usual case.
        del self._held[before.identity]
        self._held[after.identity] = known
        known.names = after
        self.own_bytes += after.own_bytes - before.own_bytes
        self._forget_alike(before)
        self._alike[after.crc] = after

    def release(self, names: SortedNames) -> bool:
        """Count one set less that has a version; return True if it was the last."""
        identity = names.identity
        held = self._held[identity]
        held.holders -= 1
        if held.holders:
            return False
        del self._held[identity]
        self.own_bytes -= names.own_bytes
        self._forget_alike(names)
        return True

    def _forget_alike(self, names: SortedNames) -> None:
        known = self._alike.get(names.crc)
        if known is not None and known.identity == names.identity:
            del self._alike[names.crc]

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return the version in use that has the same names, or else ``names``; in steps."""
        known = self._alike.get(names.crc)
        if known is not None and (yield from alike(known, names)):
            return known
        return names


SET_BYTES = 2_048
"""Bytes of a set without its names; most are the index entry of its pattern."""
NAME_OBJECT_BYTES = 33
"""Python's overhead for a name's bytes object."""


class SetWatcher(Protocol):
    """An interface of a set's watcher, which the namespace notifies of changes."""

    def changed(self, update: SetUpdate) -> None:
        """Send the client an update of the set, now or later."""

    def fell_behind(self) -> None:
        """Send the client all changes that it missed, as the last was too large for one update."""

    def give_up(self) -> None:
        """Close the client's connection, as the set's names can no longer be determined."""


class WatchedSet:
    """Those topic names of a namespace that match a pattern, and the watchers of this set.

    Attributes:
        pattern: The pattern without its domain.
        names: The newest version.
        watchers: The watchers, in order of arrival.
        encoded: Encodes versions for all sets of the namespace.
        reconciler: Builds updates for lagging watchers.
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
    """The sets and nodes that a changed name has produced, so that each is built only once.

    Equal sets stay equal objects, and sets built from the same nodes keep sharing them.
    """

    __slots__ = ("nodes", "versions")

    def __init__(self) -> None:
        # By identity; keeping the versions alive keeps identities unique.
        self.versions: dict[int, tuple[SortedNames, SortedNames]] = {}
        self.nodes: ChangedNodes = {}


class WatchedSets:
    """All watched sets of a namespace, which share the objects of its topic names.

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
        """The names of all persistent user topics of the namespace."""
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
        """Return the watched set of a pattern; None if no watch has the pattern."""
        return self._by_pattern.get(pattern)

    def add(self, pattern: str, names: SortedNames) -> WatchedSet:
        """Add the watched set of a pattern, and count its memory."""
        watched = self._by_pattern[pattern] = WatchedSet(pattern, names, self._encoded)
        self._versions.hold(names)
        return watched

    def replace(self, watched: WatchedSet, names: SortedNames) -> None:
        """Replace the names of a set by their next version.

        The memory of a dropped set is not counted.
        """
        if self._by_pattern.get(watched.pattern) is watched:
            self._versions.exchange(watched.names, names)
        watched.names = names

    def discard(self, watched: WatchedSet) -> bool:
        """Drop a set that has no watchers; return True if no other set has its version."""
        if self._by_pattern.pop(watched.pattern, None) is None:
            return False
        return self._versions.release(watched.names)

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return the version in use that has the same names, or else ``names``; in steps."""
        return self._versions.like(names)

    @property
    def held_bytes(self) -> int:
        """Approximate memory of all names and sets in bytes; shared memory counts once."""
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
        """Add or remove a name in the namespace, and in those sets whose pattern matches it.

        Args:
            name: The name.
            watched: The matching sets, or some of them.
            added: Whether the name is added or removed.
            done: Results to share; pass the same object in all calls for a change.

        Returns:
            The changed sets.
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
    """Return a set after adding or removing a name; computed only once for all equal sets."""
    known = done.versions.get(names.identity)
    if known is None:
        change = names.with_name if added else names.without_name
        after = change(name, done.nodes)
        done.versions[names.identity] = (names, after)
    else:
        after = known[1]
    return names if after.identity == names.identity else after
