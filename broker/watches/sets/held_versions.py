"""The held versions of sets, each counted once for all sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.watches.names.merging import alike

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.watches.names.sorted_names import SortedNames


class _Held:
    """A version and the number of its holders."""

    __slots__ = ("holders", "names")

    def __init__(self, names: SortedNames) -> None:
        self.names = names
        self.holders = 0


class HeldVersions:
    """The versions in use, and their memory.

    Attributes:
        own_bytes: Memory of all versions together, without their names.

    The mutable state is the versions, indexed by identity and by CRC.
    """

    def __init__(self) -> None:
        self.own_bytes = 0
        self._held: dict[int, _Held] = {}
        self._alike: dict[int, SortedNames] = {}

    def hold(self, names: SortedNames) -> None:
        """Add a holder of a version."""
        held = self._held.get(names.identity)
        if held is None:
            held = self._held[names.identity] = _Held(names)
            self.own_bytes += names.own_bytes
            self._alike[names.crc] = names
        held.holders += 1

    def exchange(self, before: SortedNames, after: SortedNames) -> None:
        """Move a holder from one version to another."""
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
        """Remove a holder; tell whether it was the last."""
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
        """Return the held version with the same names if present, else ``names``; in steps."""
        known = self._alike.get(names.crc)
        if known is not None and (yield from alike(known, names)):
            return known
        return names
