"""Who holds the memory: one line for each owner and namespace, as frozen values.

What several owners share is divided among them by their references, rounded down; the full size
and the number of sharers stand beside it. Who does not say whose a request is has a line under
policy fair only: under fifo there is no account of it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from limiter.accounts import Account, SharedHolder
    from limiter.permit import Permit, Waiter


@dataclass(frozen=True, slots=True)
class HolderLine:
    """What one owner holds and waits for in one namespace. Units: permits (bytes), requests.

    Attributes:
        owner: Who it is; None is who did not say.
        namespace: ``tenant/namespace``; empty where the request did not say.
        held: What it holds: its own, and its part of what it shares.
        permits: How many permits that is, shared ones included.
        shared: The full size of what it shares with others; 0 when nothing is shared.
        sharers: How many own that together, at most; 1 when nothing is shared.
        waiting_requests: Its requests that wait, shared ones included.
        waiting: What they lack, of shared ones its part.
        age_seconds: How long its oldest permit has been held; None when nobody keeps a ledger.
    """

    owner: Hashable | None
    namespace: str
    held: int
    permits: int
    shared: int
    sharers: int
    waiting_requests: int
    waiting: int
    age_seconds: float | None


class HolderCount:
    """Counts accounts, one after the other; a long list may be counted in several turns.

    Args:
        age_seconds: How long a permit has been held, of the ledger if there is one.
    """

    def __init__(self, age_seconds: Callable[[Permit], float | None] | None = None) -> None:
        self._age_seconds = age_seconds
        self._lines: list[HolderLine] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, account: Account) -> None:
        """Count what an account holds and waits for now."""
        counts: dict[str, _Count] = {}
        for permit in account.permits:
            _of(counts, permit.namespace).holds(permit, permit.size, self._age_seconds)
        for waiter in account.waiters:
            _of(counts, waiter.namespace).waits(waiter, waiter.needed)
        for holder in account.shared:
            self._add_shared(_of(counts, holder.namespace), holder, account)
        self._lines.extend(count.line(account.owner, name) for name, count in counts.items())

    def _add_shared(self, count: _Count, holder: SharedHolder, account: Account) -> None:
        references, total = holder.references_of(account), holder.references
        for permit in holder.permits:
            count.holds(permit, permit.size * references // total, self._age_seconds)
            count.shares(permit.size, holder.sharers)
        for waiter in holder.waiters:
            count.waits(waiter, waiter.needed * references // total)

    def largest(self, limit: int) -> list[HolderLine]:
        """Return who holds most, the largest first; of equals who waits for most."""
        return heapq.nlargest(limit, self._lines, key=lambda line: (line.held, line.waiting))


class _Count:
    """A line in the making."""

    __slots__ = ("age", "held", "permits", "shared", "sharers", "waiting", "waiting_requests")

    def __init__(self) -> None:
        self.held = self.permits = self.shared = self.waiting = self.waiting_requests = 0
        self.sharers = 1
        self.age: float | None = None

    def holds(
        self, permit: Permit, part: int, age_seconds: Callable[[Permit], float | None] | None
    ) -> None:
        self.held += part
        self.permits += 1
        age = None if age_seconds is None else age_seconds(permit)
        if age is not None:
            self.age = age if self.age is None else max(age, self.age)

    def shares(self, size: int, sharers: int) -> None:
        if sharers > 1:
            self.shared += size
            self.sharers = max(self.sharers, sharers)

    def waits(self, waiter: Waiter, part: int) -> None:
        self.waiting += part
        self.waiting_requests += 1

    def line(self, owner: Hashable | None, namespace: str) -> HolderLine:
        return HolderLine(
            owner,
            namespace,
            self.held,
            self.permits,
            self.shared,
            self.sharers,
            self.waiting_requests,
            self.waiting,
            self.age,
        )


def _of(counts: dict[str, _Count], namespace: str) -> _Count:
    count = counts.get(namespace)
    if count is None:
        count = counts[namespace] = _Count()
    return count
