"""A set of very many names: neither to grow nor to free it takes a long step."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PARTS = 256
"""A set of a million names is rehashed for 30 ms when it grows, and a part of it for 0.1."""


class NameSet(AbstractSet[bytes]):
    """Names in parts. Mutable."""

    def __init__(self) -> None:
        self._parts: list[set[bytes]] = [set() for _ in range(PARTS)]

    def __contains__(self, name: object) -> bool:
        return name in self._parts[hash(name) % PARTS]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def new(self, names: Iterable[bytes]) -> Iterator[bytes]:
        """Add names, and yield those that were not there."""
        for name in names:
            part = self._parts[hash(name) % PARTS]
            if name not in part:
                part.add(name)
                yield name

    def add(self, names: Iterable[bytes]) -> None:
        """Add names."""
        for _ in self.new(names):
            pass

    def clear(self) -> None:
        """Remove all, a part in each step; other threads may have their turn between them."""
        for part in self._parts:
            part.clear()
