"""Report of held memory, with a line for each owner and namespace.

Shared permits are divided among their owners by references, rounded down; the full size and the
number of sharers are reported as well. Requests without an owner are listed under policy fair only:
fifo has no account for them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.permits.account import Account, SharedHolder
    from limiter.permits.ledger import Ledger
    from limiter.permits.permit import Permit


@dataclass(frozen=True, slots=True)
class HolderLine:
    """Report line on an owner's permits and requests in a namespace.

    Units: permits (bytes), requests.

    Attributes:
        owner: The owner; None is for requests without an owner.
        namespace: ``tenant/namespace``; empty if the request named none.
        held: Its own permits, and its part of shared permits.
        permits: Number of permits, shared permits included.
        shared: The full size of its shared permits; 0 if nothing is shared.
        sharers: The largest number of owners of a shared permit; 1 if nothing is shared.
        waiting: Its waiting requests, shared requests included.
        lacking: The permits that its requests lack; of shared requests, only its part.
        age_seconds: Age of its oldest permit; None without a ledger.
    """

    owner: Hashable | None
    namespace: str
    held: int
    permits: int
    shared: int
    sharers: int
    waiting: int
    lacking: int
    age_seconds: float | None


class HolderCount:
    """Unfinished report on held memory, to which accounts are added one after another.

    A long list may be counted in several event-loop iterations.

    Args:
        limit: Largest number of lines to keep: those with the most held permits, among equals those
            with the most lacking permits.
        ledger: Knows the ages of permits; None without a ledger.

    Attributes:
        total: The number of all lines.
    """

    def __init__(self, limit: int, ledger: Ledger | None = None) -> None:
        self.total = 0
        self._limit = limit
        self._ledger = ledger
        # A min-heap; the number keeps the order of equals.
        self._largest: list[tuple[int, int, int, _Count]] = []

    def add(self, account: Account) -> None:
        """Count an account's permits and waiting requests."""
        counts: dict[str, _Count] = {}
        for permit in account.permits:
            _of(counts, permit.namespace).holds(permit, permit.size)
        for waiter in account.waiters:
            _of(counts, waiter.namespace).waits(waiter.needed)
        for holder in account.shared:
            # A shared holder without permits and requests gets no line.
            if holder.permits or holder.waiters:
                _add_shared(_of(counts, holder.namespace), holder, account)
        for namespace, count in counts.items():
            count.owner, count.namespace = account.owner, namespace
            self._keep(count)

    def _keep(self, count: _Count) -> None:
        self.total += 1
        line = count.held, count.lacking, -self.total, count
        if len(self._largest) < self._limit:
            heapq.heappush(self._largest, line)
        else:
            heapq.heappushpop(self._largest, line)

    def lines(self) -> tuple[HolderLine, ...]:
        """Return the report lines that were kept, largest first."""
        largest = sorted(self._largest, reverse=True)
        return tuple(count.line(self._age_of(count)) for *_, count in largest)

    def _age_of(self, count: _Count) -> float | None:
        if self._ledger is None:
            return None
        ages = map(self._ledger.age_seconds, count.permits)
        return max((age for age in ages if age is not None), default=None)


class _Count:
    __slots__ = (
        "held",
        "lacking",
        "namespace",
        "owner",
        "permits",
        "shared",
        "sharers",
        "waiting",
    )

    def __init__(self) -> None:
        self.owner: Hashable | None = None
        self.namespace = ""
        self.held = self.shared = self.waiting = self.lacking = 0
        self.sharers = 1
        self.permits: list[Permit] = []

    def holds(self, permit: Permit, part: int) -> None:
        self.held += part
        self.permits.append(permit)

    def shares(self, size: int, sharers: int) -> None:
        if sharers > 1:
            self.shared += size
            self.sharers = max(self.sharers, sharers)

    def waits(self, part: int) -> None:
        self.lacking += part
        self.waiting += 1

    def line(self, age_seconds: float | None) -> HolderLine:
        return HolderLine(
            owner=self.owner,
            namespace=self.namespace,
            held=self.held,
            permits=len(self.permits),
            shared=self.shared,
            sharers=self.sharers,
            waiting=self.waiting,
            lacking=self.lacking,
            age_seconds=age_seconds,
        )


def _of(counts: dict[str, _Count], namespace: str) -> _Count:
    count = counts.get(namespace)
    if count is None:
        count = counts[namespace] = _Count()
    return count


def _add_shared(count: _Count, holder: SharedHolder, account: Account) -> None:
    references, total = holder.references_of(account), holder.references
    for permit in holder.permits:
        count.holds(permit, permit.size * references // total)
        count.shares(permit.size, holder.sharers)
    for waiter in holder.waiters:
        count.waits(waiter.needed * references // total)
