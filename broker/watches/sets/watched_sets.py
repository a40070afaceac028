"""The sets that are watched in one namespace: one for each pattern, whoever watches it.

Sets hold references to the namespace's name objects; equal sets are one. A change of a name
costs the sets it belongs to a path each, and all who watch a set are told by one update.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames
from broker.watches.sets.held_versions import HeldVersions
from broker.watches.sets.reconciler import Reconciler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from broker.watches.names.nodes import ChangedNodes
    from broker.watches.updates.set_update import SetUpdate

SET_BYTES = 2_048
"""What a set costs beside its version: its pattern in the index, most of all."""
NAME_OBJECT_BYTES = 33
"""What Python adds to a name's bytes."""


class EncodedNames:
    """A version of a set as it goes on the wire; kept for as long as somebody is being sent it.

    Attributes:
        names: The version.
        parts: Its names in order, as proto.watch_commands.encode_names gives them.
    """

    __slots__ = ("__weakref__", "names", "parts")

    def __init__(self, names: SortedNames, parts: Sequence[bytes]) -> None:
        self.names = names
        self.parts = parts


class SetWatcher(Protocol):
    """Who is told of a set's changes."""

    def changed(self, update: SetUpdate) -> None:
        """The set has changed."""

    def fell_behind(self) -> None:
        """The set has changed by more than one update may hold."""

    def give_up(self) -> None:
        """Nobody can tell any more what the set is."""


class WatchedSet:
    """What one pattern keeps of a namespace.

    Attributes:
        pattern: The pattern without its domain.
        names: The newest version.
        watchers: Those who watch it.
        reconciler: Makes updates for those of them who are behind.
    """

    __slots__ = ("_encoded", "names", "pattern", "reconciler", "watchers")

    def __init__(self, pattern: str, names: SortedNames) -> None:
        self.pattern = pattern
        self.names = names
        self.watchers: dict[SetWatcher, None] = {}
        self.reconciler = Reconciler()
        self._encoded: Callable[[], EncodedNames | None] = _nothing

    def __repr__(self) -> str:
        return f"<WatchedSet {self.pattern!r}, {len(self.names)} names>"

    def encoded(self) -> EncodedNames | None:
        """Return what was last remembered, while somebody is being sent it."""
        return self._encoded()

    def remember(self, encoded: EncodedNames) -> None:
        """Share encoded names with who asks next, for as long as somebody else keeps them."""
        self._encoded = weakref.ref(encoded)


def _nothing() -> None:
    return None


class SharedChange:
    """What one name that comes or goes makes of versions and of their nodes, each made once.

    Equal sets stay one, and sets that were made from the same nodes go on sharing them.
    """

    __slots__ = ("nodes", "versions")

    def __init__(self) -> None:
        # By identity; the versions themselves, so that none can end meanwhile.
        self.versions: dict[int, tuple[SortedNames, SortedNames]] = {}
        self.nodes: ChangedNodes = {}


class WatchedSets:
    """All watched sets of a namespace, and all its names, which they share.

    The mutable state is the sets by pattern. Bound: floodgateTopicWatchMaxBytes, which those who
    add a set ask first.
    """

    def __init__(self, everything: SortedNames = EMPTY_NAMES) -> None:
        self._everything = everything
        self._versions = HeldVersions()
        self._versions.hold(everything)
        self._by_pattern: dict[str, WatchedSet] = {}

    @property
    def everything(self) -> SortedNames:
        """The persistent user topics."""
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
        watched = self._by_pattern[pattern] = WatchedSet(pattern, names)
        self._versions.hold(names)
        return watched

    def replace(self, watched: WatchedSet, names: SortedNames) -> None:
        """Give a set its next version; one that was forgotten meanwhile costs nothing."""
        if self._by_pattern.get(watched.pattern) is watched:
            self._versions.exchange(watched.names, names)
        watched.names = names

    def discard(self, watched: WatchedSet) -> None:
        """Forget a set that nobody watches."""
        if self._by_pattern.pop(watched.pattern, None) is not None:
            self._versions.release(watched.names)

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return a version that is there already and holds the same names, or these; in steps."""
        return self._versions.like(names)

    @property
    def held_bytes(self) -> int:
        """About what names and sets cost in memory; what sets share counts once."""
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
            name: Which one.
            watched: Those sets, or some of them.
            added: Whether the name came.
            done: Where there are more calls for the same name, for all of them the same.

        Returns:
            The sets that are not as they were.
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
    """Change a version once for all sets that have it."""
    known = done.versions.get(names.identity)
    if known is None:
        change = names.with_name if added else names.without_name
        after = change(name, done.nodes)
        done.versions[names.identity] = (names, after)
    else:
        after = known[1]
    return names if after.identity == names.identity else after
