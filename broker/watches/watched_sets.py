"""The sets that are watched in one namespace: one for each pattern, whoever watches it.

Sets hold references to the namespace's name objects; equal sets are one. A change of a name
costs the sets it belongs to a path each, and all who watch a set are told by one update.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from proto.sorted_names import EMPTY_NAMES, SortedNames
from proto.watch_commands import WatchUpdate, encode_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.watches.payment import UpdatePayment

NAME_OBJECT_BYTES = 33
"""What Python adds to a name's bytes."""


class SetUpdate:
    """One change of a watched set, encoded once for all who are told it.

    Args:
        before: The set it starts from.
        after: The set it leads to.
        names: What came and went, as proto.watch_commands.encode_changes gives it.

    Attributes:
        command: What is sent.
        payment: Pays for what is sent to all who are told at once.
    """

    __slots__ = ("after", "before", "command", "payment")

    def __init__(
        self,
        before: SortedNames,
        after: SortedNames,
        names: bytes,
        payment: UpdatePayment | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.command = WatchUpdate(names, after.hash)
        self.payment = payment
        if payment is not None:
            payment.size_bytes += self.command.body_bytes

    def __repr__(self) -> str:
        return f"<update to {self.after.hash}>"


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

    def give_up(self) -> None:
        """Nobody can tell any more what the set is."""


class WatchedSet:
    """What one pattern keeps of a namespace.

    Attributes:
        pattern: The pattern without its domain.
        names: The newest version.
        watchers: Those who watch it.
    """

    __slots__ = ("_encoded", "names", "pattern", "watchers")

    def __init__(self, pattern: str, names: SortedNames) -> None:
        self.pattern = pattern
        self.names = names
        self.watchers: dict[SetWatcher, None] = {}
        self._encoded: Callable[[], EncodedNames | None] = _nothing

    def __repr__(self) -> str:
        return f"<WatchedSet {self.pattern!r}, {len(self.names)} names>"

    def encoded(self) -> EncodedNames | None:
        """Return what was last remembered, while somebody is being sent it."""
        return self._encoded()

    def remember(self, encoded: EncodedNames) -> None:
        """Share encoded names with who asks next, for as long as somebody else keeps them."""
        self._encoded = weakref.ref(encoded)

    def update_since(self, before: SortedNames) -> SetUpdate | None:
        """Return what leads from an earlier version to the newest; None if they are alike."""
        changes = before.changes_to(self.names)
        if not (changes.added or changes.removed):
            return None
        return SetUpdate(before, self.names, encode_changes(changes.added, changes.removed))


def _nothing() -> None:
    return None


class WatchedSets:
    """All watched sets of a namespace, and all its names, which they share.

    Attributes:
        everything: The persistent user topics.

    The mutable state is the sets by pattern. Bound: floodgateTopicWatchMaxBytes, which those who
    add a set ask first.
    """

    def __init__(self, everything: SortedNames = EMPTY_NAMES) -> None:
        self.everything = everything
        self._by_pattern: dict[str, WatchedSet] = {}

    def __len__(self) -> int:
        return len(self._by_pattern)

    def __iter__(self) -> Iterator[WatchedSet]:
        return iter(self._by_pattern.values())

    def get(self, pattern: str) -> WatchedSet | None:
        """Return the set of a pattern, if there is one."""
        return self._by_pattern.get(pattern)

    def add(self, pattern: str, names: SortedNames) -> WatchedSet:
        """Add the set of a pattern; equal names as another set has are held once."""
        watched = self._by_pattern[pattern] = WatchedSet(pattern, self._like(names))
        return watched

    def discard(self, watched: WatchedSet) -> None:
        """Forget a set that nobody watches."""
        self._by_pattern.pop(watched.pattern, None)

    def _like(self, names: SortedNames) -> SortedNames:
        """Return a version that is there already and holds the same names, or these."""
        versions = (self.everything, *(one.names for one in self._by_pattern.values()))
        for version in versions:
            if version.fingerprint == names.fingerprint and version.equals(names):
                return version
        return names

    @property
    def held_bytes(self) -> int:
        """About what names and sets cost in memory; what sets share counts once."""
        everything = self.everything
        if not self._by_pattern:
            return 0
        versions = {everything.identity: everything}
        versions.update((one.names.identity, one.names) for one in self._by_pattern.values())
        names_bytes = everything.name_bytes + NAME_OBJECT_BYTES * len(everything)
        return names_bytes + sum(version.own_bytes for version in versions.values())

    def change(
        self, name: bytes, watched: Iterable[WatchedSet], *, added: bool
    ) -> list[WatchedSet]:
        """Add or remove one name, in the namespace and in the sets whose pattern keeps it.

        Returns:
            The sets that are not as they were.
        """
        done: dict[int, tuple[SortedNames, SortedNames]] = {}
        self.everything = _changed(self.everything, name, done, added=added)
        different = []
        for one in watched:
            before = one.names
            one.names = _changed(before, name, done, added=added)
            if one.names is not before:
                different.append(one)
        return different


def _changed(
    names: SortedNames,
    name: bytes,
    done: dict[int, tuple[SortedNames, SortedNames]],
    *,
    added: bool,
) -> SortedNames:
    """Change a version once for all sets that have it; ``done`` keeps those alive it names."""
    known = done.get(names.identity)
    if known is None:
        after = names.with_name(name) if added else names.without_name(name)
        done[names.identity] = (names, after)
    else:
        after = known[1]
    return names if after.identity == names.identity else after
