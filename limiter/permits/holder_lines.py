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


@dataclass(slots=True)
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
    held: int = 0
    permits: int = 0
    shared: int = 0
    sharers: int = 1
    waiting: int = 0
    lacking: int = 0
    age_seconds: float | None = None


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

        def of(namespace: str) -> _Count:
            if namespace not in counts:
                counts[namespace] = _Count(HolderLine(account.owner, namespace))
            return counts[namespace]

        for permit in account.permits:
            of(permit.namespace).holds(permit, permit.size)
        for waiter in account.waiters:
            of(waiter.namespace).waits(waiter.needed)
        for holder in account.shared:
            # A shared holder without permits and requests gets no line.
            if holder.permits or holder.waiters:
                of(holder.namespace).shares(holder, holder.references_of(account))
        for count in counts.values():
            self._keep(count)

    def _keep(self, count: _Count) -> None:
        self.total += 1
        line = count.line.held, count.line.lacking, -self.total, count
        if len(self._largest) < self._limit:
            heapq.heappush(self._largest, line)
        else:
            heapq.heappushpop(self._largest, line)

    def lines(self) -> tuple[HolderLine, ...]:
        """Return the report lines that were kept, largest first."""
        largest = [count for *_, count in sorted(self._largest, reverse=True)]
        if self._ledger is not None:
            for count in largest:
                ages = map(self._ledger.age_seconds, count.permits)
                known = (age for age in ages if age is not None)
                count.line.age_seconds = max(known, default=None)
        return tuple(count.line for count in largest)


class _Count:
    __slots__ = "line", "permits"

    def __init__(self, line: HolderLine) -> None:
        self.line = line
        self.permits: list[Permit] = []

    def holds(self, permit: Permit, part: int) -> None:
        self.line.held += part
        self.line.permits += 1
        self.permits.append(permit)

    def waits(self, part: int) -> None:
        self.line.lacking += part
        self.line.waiting += 1

    def shares(self, holder: SharedHolder, references: int) -> None:
        for permit in holder.permits:
            self.holds(permit, permit.size * references // holder.references)
            if holder.sharers > 1:
                self.line.shared += permit.size
                self.line.sharers = max(self.line.sharers, holder.sharers)
        for waiter in holder.waiters:
            self.waits(waiter.needed * references // holder.references)
