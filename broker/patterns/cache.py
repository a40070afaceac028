"""A size-limited cache of values computed from topic lists, such as the results of patterns.

An entry belongs to a topic list or block (its scope), and is evicted when the scope is freed: a
request for a part never keeps an old version of a namespace in memory.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

ENTRY_BYTES = 760
"""Bytes of a cache entry beside its value and key text: scope, key, and slots in three tables."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """The size of a cache, and its numbers of hits, misses and evictions."""

    bytes: int
    entries: int
    hits: int
    misses: int
    evictions: int


class _Entry(NamedTuple):
    value: object
    size_bytes: int


class _Scope(NamedTuple):
    reference: weakref.ref[object]
    keys: set[Hashable]


class ListingCache:
    """A cache of recently used values, limited in bytes (``floodgateListingCacheMB``).

    Args:
        max_bytes: Most bytes of all entries together; 0 disables the cache.

    The mutable state is the entries, in the order of their last use, and the counters.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[tuple[int, Hashable], _Entry] = OrderedDict()
        self._scopes: dict[int, _Scope] = {}
        # Freed scopes: a store's thread may drop the last reference.
        self._gone: deque[tuple[int, weakref.ref[object]]] = deque()
        self._bytes = self._hits = self._misses = self._evictions = 0

    def statistics(self) -> CacheStatistics:
        """Return the cache's size and its numbers of hits, misses and evictions."""
        self._forget_gone()
        return CacheStatistics(
            self._bytes, len(self._entries), self._hits, self._misses, self._evictions
        )

    def get(self, scope: object, key: Hashable) -> object | None:
        """Return the cached value of a scope and key; None if it is not in the cache."""
        self._forget_gone()
        place = (id(scope), key)
        entry = self._entries.get(place)
        if entry is None:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(place)
        return entry.value

    def put(self, scope: object, key: Hashable, value: object, size_bytes: int) -> None:
        """Cache a value until it is evicted as least recently used, or until its scope is freed.

        Args:
            scope: The source of the value; held weakly, and must not be referenced by the value.
            key: Distinguishes the values of a scope.
            value: Not None.
            size_bytes: Memory of the value, without parts shared with the scope.
        """
        self._forget_gone()
        size_bytes += ENTRY_BYTES + (sys.getsizeof(key) if isinstance(key, str) else 0)
        if size_bytes > self.max_bytes:
            return
        place = (id(scope), key)
        if place in self._entries:
            self._drop(place)
        self._entries[place] = _Entry(value, size_bytes)
        self._bytes += size_bytes
        self._keys_of(scope).add(key)
        while self._bytes > self.max_bytes:
            self._drop(next(iter(self._entries)))
            self._evictions += 1

    def _keys_of(self, scope: object) -> set[Hashable]:
        known = self._scopes.get(id(scope))
        if known is None:
            number, gone = id(scope), self._gone
            reference = weakref.ref(scope, lambda one: gone.append((number, one)))
            known = self._scopes[number] = _Scope(reference, set())
        return known.keys

    def _drop(self, place: tuple[int, Hashable]) -> None:
        number, key = place
        self._bytes -= self._entries.pop(place).size_bytes
        keys = self._scopes[number].keys
        keys.discard(key)
        if not keys:
            del self._scopes[number]

    def _forget_gone(self) -> None:
        while self._gone:
            number, reference = self._gone.popleft()
            scope = self._scopes.get(number)
            if scope is not None and scope.reference is reference:
                for key in list(scope.keys):
                    self._drop((number, key))
