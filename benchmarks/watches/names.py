"""A client's copy of a watch: every name, and Pulsar's hash computed from all of them.

Nothing here is shared with the broker's own sets but the CRC32C. Clients that are in the same
state share it, so that a thousand of them that watch the same set check it once.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from proto.topic_hash import format_hash, java_order, joined_crc

if TYPE_CHECKING:
    from collections.abc import Sequence


class WatchError(Exception):
    """An update does not fit the ones before it; one sentence."""


class WatchedNames:
    """One state of a watched set. Immutable, but for what it remembers of its successors.

    Args:
        names: In Java's order.
    """

    __slots__ = ("__weakref__", "_next", "hash", "names")

    def __init__(self, names: Sequence[bytes]) -> None:
        self.names = names
        self.hash = format_hash(joined_crc(names)[0])
        # As long as somebody is in that state: the first would keep all that ever were.
        self._next: WeakValueDictionary[tuple[Sequence[str], Sequence[str]], WatchedNames]
        self._next = WeakValueDictionary()

    def after(self, new: Sequence[str], deleted: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state after an update.

        Raises:
            WatchError: It adds what is there, removes what is not, or its hash is wrong.
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
    """Return where a name is or belongs, and whether it is there."""
    place = bisect_left(names, java_order(name), key=java_order)
    return place, place < len(names) and names[place] == name


class FirstStates:
    """The sets that watches begin with; equal ones are one, and so are equal names."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}
        self._states: dict[tuple[bytes, ...], WatchedNames] = {}

    def of(self, topics: Sequence[str], told_hash: str) -> WatchedNames:
        """Return the state that an answer begins with.

        Raises:
            WatchError: Its hash is wrong.
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
