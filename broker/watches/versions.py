"""The versions of sets that are held, each counted once however many sets have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.many_names import alike

if TYPE_CHECKING:
    from collections.abc import Generator

    from proto.sorted_names import SortedNames


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

    The mutable state is the versions, found by identity and by fingerprint.
    """

    def __init__(self) -> None:
        self.own_bytes = 0
        self._held: dict[int, _Held] = {}
        self._alike: dict[tuple[int, int, int], SortedNames] = {}

    def hold(self, names: SortedNames) -> None:
        """One more holds a version."""
        held = self._held.get(names.identity)
        if held is None:
            held = self._held[names.identity] = _Held(names)
            self.own_bytes += names.own_bytes
            self._alike[names.fingerprint] = names
        held.holders += 1

    def release(self, names: SortedNames) -> None:
        """One less does."""
        identity = names.identity
        held = self._held[identity]
        held.holders -= 1
        if held.holders:
            return
        del self._held[identity]
        self.own_bytes -= names.own_bytes
        known = self._alike.get(names.fingerprint)
        if known is not None and known.identity == identity:
            del self._alike[names.fingerprint]

    def like(self, names: SortedNames) -> Generator[None, None, SortedNames]:
        """Return a version that is held and has the same names, or these; in steps."""
        known = self._alike.get(names.fingerprint)
        if known is not None and (yield from alike(known, names)):
            return known
        return names
