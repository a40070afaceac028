"""Fair queueing by bytes: tenants take turns, in them namespaces, and in these their items.

A child that was served more bytes comes later. One that arrives starts where the others are now: it
neither has to catch up with what they were served before it came, nor comes before the one whose
turn it is. The virtual time of a queue advances with the bytes it serves (worst-case fair
weighted fair queueing, WF2Q+), so that nobody is starved by a stream of newcomers.

Bound: one entry a waiting child; outdated entries of a heap are cleaned away when they are more
than half of it. Each operation costs O(log n).
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

ItemT = TypeVar("ItemT", bound="Hashable")

SLACK_ENTRIES = 32
"""Outdated entries that are not worth a cleaning."""


class LeastFirst(Generic[ItemT]):
    """Items by a number, the least first and the older first among equals."""

    def __init__(self) -> None:
        self._entries: dict[ItemT, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, ItemT]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: ItemT) -> bool:
        return item in self._entries

    def put(self, item: ItemT, value: float) -> None:
        """Add an item, or give it another value and a place behind its equals."""
        number = next(self._numbers)
        self._entries[item] = (value, number)
        if len(self._heap) > 2 * len(self._entries) + SLACK_ENTRIES:
            self._heap = [(value, age, one) for one, (value, age) in self._entries.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (value, number, item))

    def discard(self, item: ItemT) -> None:
        """Forget an item; one that is not there is no matter."""
        self._entries.pop(item, None)

    def value_of(self, item: ItemT) -> float:
        """Return the value an item was put with."""
        return self._entries[item][0]

    def first(self) -> ItemT | None:
        """Return the least item; None when there is none."""
        heap, entries = self._heap, self._entries
        while heap:
            _, number, item = heap[0]
            entry = entries.get(item)
            if entry is not None and entry[1] == number:
                return item
            heapq.heappop(heap)
        return None


class TurnQueue(Generic[ItemT]):
    """Children that take turns by the bytes they were served."""

    def __init__(self) -> None:
        self._waiting: LeastFirst[ItemT] = LeastFirst()
        # Those that left after more was served to them than to the others, until these catch up.
        self._ahead: LeastFirst[ItemT] = LeastFirst()
        self._virtual_bytes = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, child: ItemT) -> bool:
        return child in self._waiting

    def add(self, child: ItemT) -> None:
        """Let a child wait; it comes after the one whose turn it is."""
        first = self._waiting.first()
        if first is not None:
            self._virtual_bytes = max(self._virtual_bytes, self._waiting.value_of(first))
        self._forget_who_was_caught_up()
        value = self._ahead.value_of(child) if child in self._ahead else self._virtual_bytes
        self._ahead.discard(child)
        self._waiting.put(child, value)

    def discard(self, child: ItemT) -> None:
        """The child waits no more; it is remembered while it was served more than the others."""
        value = self._waiting.value_of(child)
        self._waiting.discard(child)
        if value > self._virtual_bytes:
            self._ahead.put(child, value)

    def _forget_who_was_caught_up(self) -> None:
        while (child := self._ahead.first()) is not None:
            if self._ahead.value_of(child) > self._virtual_bytes:
                return
            self._ahead.discard(child)

    def first(self) -> ItemT | None:
        """Return whose turn it is."""
        return self._waiting.first()

    def served(self, child: ItemT, size: int) -> None:
        """Charge a waiting child for ``size`` bytes, which puts it behind those that had less."""
        self._virtual_bytes += size / len(self._waiting)
        self._waiting.put(child, self._waiting.value_of(child) + size)


class FairQueue(Generic[ItemT]):
    """Three levels of turns: tenants, namespaces of a tenant, items of a namespace."""

    def __init__(self) -> None:
        self._tenants: TurnQueue[str] = TurnQueue()
        self._namespaces: dict[str, TurnQueue[str]] = {}
        self._items: dict[str, TurnQueue[ItemT]] = {}

    def __len__(self) -> int:
        return sum(len(items) for items in self._items.values())

    def add(self, namespace: str, item: ItemT) -> None:
        """Let an item wait in ``namespace``, which is ``tenant/namespace``."""
        tenant = tenant_of(namespace)
        if tenant not in self._namespaces:
            self._namespaces[tenant] = TurnQueue()
            self._tenants.add(tenant)
        if namespace not in self._items:
            self._items[namespace] = TurnQueue()
            self._namespaces[tenant].add(namespace)
        self._items[namespace].add(item)

    def discard(self, namespace: str, item: ItemT) -> None:
        """The item waits no more; levels that nobody waits in are forgotten."""
        items = self._items[namespace]
        items.discard(item)
        if items:
            return
        tenant = tenant_of(namespace)
        del self._items[namespace]
        self._namespaces[tenant].discard(namespace)
        if not self._namespaces[tenant]:
            del self._namespaces[tenant]
            self._tenants.discard(tenant)

    def first(self) -> ItemT | None:
        """Return whose turn it is: the tenant's, in it the namespace's, in it the item's."""
        tenant = self._tenants.first()
        namespace = None if tenant is None else self._namespaces[tenant].first()
        return None if namespace is None else self._items[namespace].first()

    def served(self, namespace: str, item: ItemT, size: int) -> None:
        """Charge a waiting item, its namespace and its tenant for ``size`` bytes."""
        tenant = tenant_of(namespace)
        self._tenants.served(tenant, size)
        self._namespaces[tenant].served(namespace, size)
        self._items[namespace].served(item, size)


def tenant_of(namespace: str) -> str:
    """Return the tenant of ``tenant/namespace``."""
    return namespace.partition("/")[0]
