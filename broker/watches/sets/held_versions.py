"""The versions of sets that are held, each counted once however many sets have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.watches.names.merging import alike

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.watches.names.sorted_names import SortedNames


class _Held:
    """A version, and how many hold it."""

    __slots__ = ("holders", "names")

    def __init__(self, names: SortedNames) -> None:
        self.names = names
        self.holders = 0


class HeldVersions:
    """Counts what versions cost in memory while somebody holds them.

    Attributes:
        own_bytes: Of all versions together, without their names.

    The mutable state is the versions, found by identity and by CRC.
    """

    def __init__(self) -> None:
        self.own_bytes = 0
        self._held: dict[int, _Held] = {}
        self._alike: dict[int, SortedNames] = {}

    def hold(self, names: SortedNames) -> None:
        """One more holds a version."""
        held = self._held.get(names.identity)
        if held is None:
            held = self._held[names.identity] = _Held(names)
            self.own_bytes += names.own_bytes
            self._alike[names.crc] = names
        held.holders += 1

    def exchange(self, before: SortedNames, after: SortedNames) -> None:
        """One who holds a version holds another instead."""
        known = self._held[before.identity]
        if known.holders > 1 or after.identity in self._held:
            self.hold(after)
            self.release(before)
            return
        # What a change makes of a set that is like no other: the quick way to the same.
        del self._held[before.identity]
        self._held[after.identity] = known
        known.names = after
        self.own_bytes += after.own_bytes - before.own_bytes
        self._forget_alike(before)
        self._alike[after.crc] = after

    def release(self, names: SortedNames) -> None:
        """One less does."""
        identity = names.identity
        held = self._held[identity]
        held.holders -= 1
        if held.holders:
            return
        del self._held[identity]
        self.own_bytes -= names.own_bytes
        self._forget_alike(names)

    def _forget_alike(self, names: SortedNames) -> None:
        known = self._alike.get(names.crc)
        if known is not None and known.identity == names.identity:
            del self._alike[names.crc]

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return a version that is held and has the same names, or these; in steps."""
        known = self._alike.get(names.crc)
        if known is not None and (yield from alike(known, names)):
            return known
        return names
