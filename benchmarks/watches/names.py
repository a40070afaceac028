"""A client's copy of a watch: every name, and Pulsar's hash over all names.

Independent of the broker's sets except for CRC32C. Clients share equal states, so a thousand
watchers of the same set are checked once.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from proto.topic_hash import format_hash, java_order, joined_crc

if TYPE_CHECKING:
    from collections.abc import Sequence


class WatchError(Exception):
    """An update does not fit the earlier updates; a sentence."""


class WatchedNames:
    """State of a watched set. Immutable, except for its cached successors.

    Args:
        names: In Java's order.
    """

    __slots__ = ("__weakref__", "_next", "hash", "names")

    def __init__(self, names: Sequence[bytes]) -> None:
        self.names = names
        self.hash = format_hash(joined_crc(names)[0])
        # Weak: strong references from the first state would keep every later state.
        self._next: WeakValueDictionary[tuple[Sequence[str], Sequence[str]], WatchedNames]
        self._next = WeakValueDictionary()

    def after(self, new: Sequence[str], deleted: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state after an update.

        Raises:
            WatchError: The update adds a present name, removes a missing name, or has a wrong hash.
        """
        key = (tuple(new), tuple(deleted))
        known = self._next.get(key)
        if known is None:
            known = self._next[key] = self._changed(*key)
        if known.hash != told_hash:
            raise WatchError(
                f"an update says hash {told_hash}, the {len(known.names)} names have {known.hash}"
            )
        return known

    def _changed(self, new: Sequence[str], deleted: Sequence[str]) -> WatchedNames:
        if not new and not deleted:
            raise WatchError("an update says nothing")
        names = list(self.names)
        for name in deleted:
            place, there = _place(names, name.encode())
            if not there:
                raise WatchError(f"{name} was deleted and was not there")
            del names[place]
        for name in new:
            place, there = _place(names, name.encode())
            if there:
                raise WatchError(f"{name} is new and was there")
            names.insert(place, name.encode())
        return WatchedNames(names)


def _place(names: Sequence[bytes], name: bytes) -> tuple[int, bool]:
    """Return a name's index or insertion point, and whether the name is present."""
    place = bisect_left(names, java_order(name), key=java_order)
    return place, place < len(names) and names[place] == name


class FirstStates:
    """Initial sets of watches, with equal sets and equal names shared."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}
        self._states: dict[tuple[bytes, ...], WatchedNames] = {}

    def of(self, topics: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state of an initial answer.

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
                f"an answer says hash {told_hash}, its {len(names)} names have {state.hash}"
            )
        return state
