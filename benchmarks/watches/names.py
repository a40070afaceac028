"""A client's copy of a watched set: every name, and Pulsar's hash over all names.

Except for CRC32C, this is independent of the broker's code for sets. Clients share equal states, so
a thousand watchers of the same set are checked once.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from proto.topic_hash import format_hash, java_order, joined_crc

if TYPE_CHECKING:
    from collections.abc import Sequence


class WatchError(Exception):
    """An update does not fit the earlier updates; the message is a sentence."""


class WatchedNames:
    """The state of a watched set of names.

    It is immutable, except for its cached successors.

    Args:
        names: The names in the order in which Java sorts them.
    """

    __slots__ = ("__weakref__", "_next", "hash", "names")

    def __init__(self, names: Sequence[bytes]) -> None:
        self.names = names
        self.hash = format_hash(joined_crc(names)[0])
        # Weak: strong references from the first state would keep every later state.
        self._next: WeakValueDictionary[tuple[Sequence[str], Sequence[str]], WatchedNames]
        self._next = WeakValueDictionary()

    def after(self, new: Sequence[str], deleted: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state that results from an update.

        Raises:
            WatchError: The update adds a name that exists, removes one that does not, or has a
                wrong hash.
        """
        key = (tuple(new), tuple(deleted))
        known = self._next.get(key)
        if known is None:
            known = self._next[key] = self._changed(*key)
        if known.hash != told_hash:
            raise WatchError(
                f"an update has hash {told_hash}, the {len(known.names)} names have {known.hash}"
            )
        return known

    def _changed(self, new: Sequence[str], deleted: Sequence[str]) -> WatchedNames:
        if not new and not deleted:
            raise WatchError("an update adds and removes no name")
        names = list(self.names)
        for name in deleted:
            place, there = _place(names, name.encode())
            if not there:
                raise WatchError(f"{name} was deleted, but did not exist")
            del names[place]
        for name in new:
            place, there = _place(names, name.encode())
            if there:
                raise WatchError(f"{name} was created, but existed before")
            names.insert(place, name.encode())
        return WatchedNames(names)


def _place(names: Sequence[bytes], name: bytes) -> tuple[int, bool]:
    """Return the index at which a name is or would be inserted, and whether it is there."""
    place = bisect_left(names, java_order(name), key=java_order)
    return place, place < len(names) and names[place] == name


class FirstStates:
    """The initial states of watches, which share equal sets and equal names."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}
        self._states: dict[tuple[bytes, ...], WatchedNames] = {}

    def of(self, topics: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state that the first answer to a watch gives.

        Raises:
            WatchError: The answer's hash is wrong.
        """
        known = self._names
        own = (known.setdefault(name, name) for name in map(str.encode, topics))
        names = tuple(sorted(own, key=java_order))
        state = self._states.get(names)
        if state is None:
            state = self._states[names] = WatchedNames(names)
        if state.hash != told_hash:
            raise WatchError(
                f"an answer has hash {told_hash}, its {len(names)} names have {state.hash}"
            )
        return state
