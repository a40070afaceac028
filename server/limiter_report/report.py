"""A report for operators on the holders of a server's memory, from its limiter.

The figures of a budget are of one moment. Its holders are counted in several turns of the loop,
so that many of them hold up nobody: each line is of one moment, the list is not.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from limiter.memory.dual_limiter import LimitType
from limiter.permits.holder_lines import HolderCount
from limiter.permits.ledger import names_of
from proto.transport.connection import Connection
from server.limiter_report.waiting import waiting_by_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from limiter.clock import Clock
    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.permits.holder_lines import HolderLine
    from limiter.permits.ledger import Ledger, LedgerEntry, LedgerStatistics
    from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
    from limiter.semaphore.async_semaphore import AsyncSemaphore
    from server.limiter_report.waiting import NamespaceWaiters

ACCOUNTS_A_TURN = 250
"""Accounts that are counted before others may run: well below a millisecond."""

MAX_NAME_LENGTH = 300


@dataclass(frozen=True, slots=True)
class OldestWaiter:
    """The request that has waited for longest; it lacks its size, less what it holds already."""

    owner: str
    namespace: str
    size_bytes: int
    lacking_bytes: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """One budget and who holds it.

    Attributes:
        statistics: Its figures.
        timeout_seconds: How long a request may wait.
        policy: In which order requests are granted.
        oldest_waiter: Who waits for longest, if somebody waits.
        ledger: Totals of the ledger, if there is one.
        recent: Its last events, the newest first.
        holders: Who holds most, the largest first.
        holders_total: How many lines there are in all.
        waiting: Who waits, by namespace; that which waits for longest is first.
        outcomes: How requests ended, since the start.
    """

    statistics: SemaphoreStatistics
    timeout_seconds: float
    policy: str
    oldest_waiter: OldestWaiter | None
    ledger: LedgerStatistics | None
    recent: tuple[LedgerEntry, ...]
    holders: tuple[HolderLine, ...]
    holders_total: int
    waiting: Sequence[NamespaceWaiters]
    outcomes: Mapping[AcquireOutcome, int]


class StoredMessages(NamedTuple):
    """Memory of stored messages: no request waits for it, so no permit stands for it.

    Attributes:
        stored_bytes: What the bound is compared with.
        limit_bytes: The bound; 0 is none.
        refused: How many were refused for want of room.
    """

    stored_bytes: int
    limit_bytes: int
    refused: int


class LimiterReporter:
    """Reports on one limiter.

    Attributes:
        messages: What stored messages take beside the budgets; None where none are stored.
    """

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        ledgers: Mapping[LimitType, Ledger],
        clock: Clock,
        tally: OutcomeCounts,
        messages: Callable[[], StoredMessages] | None = None,
    ) -> None:
        self.messages = messages
        self._limiter = limiter
        self._ledgers = ledgers
        self._clock = clock
        self._tally = tally

    async def report(self, holders: int, recent: int) -> dict[LimitType, BudgetReport]:
        """Return both budgets, each with so many holders and ledger events at most."""
        return {one: await self._budget(one, holders, recent) for one in LimitType}

    async def _budget(self, limit_type: LimitType, holders: int, recent: int) -> BudgetReport:
        semaphore, ledger = self._limiter.semaphore(limit_type), self._ledgers.get(limit_type)
        statistics, oldest_waiter = semaphore.statistics(), self._oldest_waiter(semaphore)
        ledger_statistics = None if ledger is None else ledger.statistics()
        outcomes = dict(self._tally.of(limit_type).outcomes)
        events = () if ledger is None else tuple(ledger.recent(recent))
        count = HolderCount(holders, ledger)
        await _count_all(count, semaphore)
        return BudgetReport(
            statistics=statistics,
            timeout_seconds=semaphore.timeout_seconds,
            policy=semaphore.policy_name,
            oldest_waiter=oldest_waiter,
            ledger=ledger_statistics,
            recent=events,
            holders=count.lines(),
            holders_total=count.total,
            waiting=await waiting_by_namespace(semaphore, self._clock),
            outcomes=outcomes,
        )

    def _oldest_waiter(self, semaphore: AsyncSemaphore) -> OldestWaiter | None:
        waiter = semaphore.oldest_waiter()
        if waiter is None:
            return None
        return OldestWaiter(
            owner=names_of(waiter.holder, owner_name),
            namespace=waiter.namespace,
            size_bytes=waiter.size,
            lacking_bytes=waiter.needed,
            age_seconds=self._clock.now() - waiter.enqueued_at,
        )


async def _count_all(count: HolderCount, semaphore: AsyncSemaphore) -> None:
    """Count every account; one that leaves meanwhile counts as holding nothing."""
    for number, account in enumerate(list(semaphore.accounts()), 1):
        count.add(account)
        if number % ACCOUNTS_A_TURN == 0:
            await asyncio.sleep(0)


def owner_name(owner: Hashable | None) -> str:
    """Return the name of an owner; that of a connection is its peer's address."""
    if isinstance(owner, Connection):
        return owner.peer
    return "unnamed" if owner is None else repr(owner)[:MAX_NAME_LENGTH]
