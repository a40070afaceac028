"""Fair queueing by bytes: round-robin over tenants, their namespaces, and the namespaces' items.

Each of these queues serves its children (namespaces, or items) by worst-case fair weighted fair
queueing (WF2Q+): a child that was served more bytes comes later. The queue's virtual time advances
with the bytes served. A new child starts at the current virtual time: it neither catches up with
earlier service, nor precedes the child that is next. So a stream of new children starves none that
already waits.

Bound: an entry for each waiting child; a heap is rebuilt when more than half of its entries are
outdated. Each operation costs O(log n).
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.permits.account import Account, Waiter

ItemT = TypeVar("ItemT", bound="Hashable")

SLACK_ENTRIES = 32
"""Number of outdated entries up to which the heap is not rebuilt."""


class LeastFirst(Generic[ItemT]):
    """Priority queue of items ordered by a number, oldest first among equals."""

    def __init__(self) -> None:
        self._entries: dict[ItemT, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, ItemT]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: ItemT) -> bool:
        return item in self._entries

    def put(self, item: ItemT, value: float) -> None:
        """Add an item, or change its value and move it behind items of the same value."""
        number = next(self._numbers)
        self._entries[item] = (value, number)
        if len(self._heap) > 2 * len(self._entries) + SLACK_ENTRIES:
            self._heap = [(value, age, one) for one, (value, age) in self._entries.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (value, number, item))

    def discard(self, item: ItemT) -> None:
        """Remove an item; no-op for an absent item."""
        self._entries.pop(item, None)

    def value_of(self, item: ItemT) -> float:
        """Return the number by which an item is ordered."""
        return self._entries[item][0]

    def first(self) -> ItemT | None:
        """Return the item with the smallest number, or None if the queue is empty."""
        heap, entries = self._heap, self._entries
        while heap:
            _, number, item = heap[0]
            entry = entries.get(item)
            if entry is not None and entry[1] == number:
                return item
            heapq.heappop(heap)
        return None


class TurnQueue(Generic[ItemT]):
    """Queue that serves its children round-robin, weighted by the bytes granted to each."""

    def __init__(self) -> None:
        self._waiting: LeastFirst[ItemT] = LeastFirst()
        # Children that left with more service than the rest, until the rest catch up.
        self._ahead: LeastFirst[ItemT] = LeastFirst()
        self._virtual_bytes = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, child: ItemT) -> bool:
        return child in self._waiting

    def add(self, child: ItemT) -> None:
        """Add a waiting child, to be served after the child that is next now."""
        first = self._waiting.first()
        if first is not None:
            self._virtual_bytes = max(self._virtual_bytes, self._waiting.value_of(first))
        self._forget_who_was_caught_up()
        value = self._ahead.value_of(child) if child in self._ahead else self._virtual_bytes
        self._ahead.discard(child)
        self._waiting.put(child, value)

    def discard(self, child: ItemT) -> None:
        """Remove a waiting child, but remember a child that was served more than the rest."""
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
        """Return the child to be served next, or None."""
        return self._waiting.first()

    def served(self, child: ItemT, size: int) -> None:
        """Charge a waiting child for ``size`` bytes, moving it behind children served less."""
        self._virtual_bytes += size / len(self._waiting)
        self._waiting.put(child, self._waiting.value_of(child) + size)


class FairQueue(Generic[ItemT]):
    """Round-robin queue on three levels: tenants, namespaces of a tenant, items of a namespace."""

    def __init__(self) -> None:
        self._tenants: TurnQueue[str] = TurnQueue()
        self._namespaces: dict[str, TurnQueue[str]] = {}
        self._items: dict[str, TurnQueue[ItemT]] = {}

    def __len__(self) -> int:
        return sum(len(items) for items in self._items.values())

    def add(self, namespace: str, item: ItemT) -> None:
        """Add a waiting item to a namespace, named ``tenant/namespace``."""
        tenant = tenant_of(namespace)
        if tenant not in self._namespaces:
            self._namespaces[tenant] = TurnQueue()
            self._tenants.add(tenant)
        if namespace not in self._items:
            self._items[namespace] = TurnQueue()
            self._namespaces[tenant].add(namespace)
        self._items[namespace].add(item)

    def discard(self, namespace: str, item: ItemT) -> None:
        """Remove an item, and also its namespace and tenant if these become empty."""
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
        """Return the next item of the next namespace of the next tenant."""
        tenant = self._tenants.first()
        namespace = None if tenant is None else self._namespaces[tenant].first()
        return None if namespace is None else self._items[namespace].first()

    def served(self, namespace: str, item: ItemT, size: int) -> None:
        """Charge a waiting item, its namespace and its tenant for ``size`` granted bytes."""
        tenant = tenant_of(namespace)
        self._tenants.served(tenant, size)
        self._namespaces[tenant].served(namespace, size)
        self._items[namespace].served(item, size)


def tenant_of(namespace: str) -> str:
    """Return the tenant of ``tenant/namespace``."""
    return namespace.partition("/")[0]


class WaitingLine:
    """Line of accounts with an admissible next request, ordered round-robin and by size."""

    def __init__(self) -> None:
        self._turns: FairQueue[Account] = FairQueue()
        self._by_size: LeastFirst[Account] = LeastFirst()
        self._namespaces: dict[Account, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def add(self, account: Account, waiter: Waiter) -> None:
        """Add an account, or update its request; bytes granted to it earlier still count."""
        before, now = self._namespaces.get(account), waiter.namespace
        if before != now:
            self._namespaces[account] = now
            self._turns.add(now, account)
            if before is not None:
                self._turns.discard(before, account)
        self._by_size.put(account, waiter.needed)

    def discard(self, account: Account) -> None:
        """Remove an account from the line."""
        self._turns.discard(self._namespaces.pop(account), account)
        self._by_size.discard(account)

    def served(self, account: Account, size: int) -> None:
        """Charge a waiting account for ``size`` granted bytes."""
        self._turns.served(self._namespaces[account], account, size)

    def first(self) -> Account | None:
        """Return the account that is next in round-robin order, or None."""
        return self._turns.first()

    def smallest(self) -> Account | None:
        """Return the account whose next request is smallest, or None."""
        return self._by_size.first()
