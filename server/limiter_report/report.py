"""Report on a server's memory limiter: who holds memory, and which requests wait for it.

The figures of a budget are all read at the same moment. Its holders are counted in several
event-loop iterations, to keep each short: the figures of a holder agree, those of the list may not.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from limiter.memory.dual_limiter import LimitType
from limiter.permits.holder_lines import HolderCount
from limiter.permits.ledger import names_of
from proto.transport.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from limiter.clock import Clock
    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.permits.holder_lines import HolderLine
    from limiter.permits.ledger import Ledger, LedgerEntry, LedgerStatistics
    from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
    from limiter.semaphore.async_semaphore import AsyncSemaphore

WAITERS_A_TURN = 1000
"""Requests counted in a turn: well below a millisecond."""


@dataclass(slots=True)
class NamespaceWaiters:
    """Summary of those requests about one namespace that wait for memory.

    Attributes:
        namespace: ``tenant/namespace``; empty if the requests named none.
        requests: Number of the requests.
        lacking_bytes: The bytes that all requests together still lack.
        oldest_seconds: How long the oldest request has waited.
    """

    namespace: str
    requests: int = 0
    lacking_bytes: int = 0
    oldest_seconds: float = 0.0


async def waiting_by_namespace(
    semaphore: AsyncSemaphore, clock: Clock
) -> Sequence[NamespaceWaiters]:
    """Summarize the requests that wait for memory by namespace, longest waiting first.

    Takes several event-loop iterations if there are many.
    """
    found: dict[str, NamespaceWaiters] = {}
    for number, waiter in enumerate(list(semaphore.waiters()), 1):
        if not waiter.done:
            line = found.setdefault(waiter.namespace, NamespaceWaiters(waiter.namespace))
            line.requests += 1
            line.lacking_bytes += waiter.needed
            waited = clock.now() - waiter.enqueued_at
            line.oldest_seconds = max(line.oldest_seconds, waited)
        if number % WAITERS_A_TURN == 0:
            await asyncio.sleep(0)
    return sorted(found.values(), key=attrgetter("oldest_seconds"), reverse=True)


ACCOUNTS_A_TURN = 250
"""Accounts counted in a turn: well below a millisecond."""

MAX_NAME_LENGTH = 300


@dataclass(frozen=True, slots=True)
class OldestWaiter:
    """The request that has waited longest for memory.

    ``lacking_bytes`` excludes the bytes that it already holds.
    """

    owner: str
    namespace: str
    size_bytes: int
    lacking_bytes: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """Report on one memory limit (heap or direct): who holds memory, and who waits for it.

    Attributes:
        statistics: The numbers of the limit: what is held, and how many requests wait.
        timeout_seconds: How long a request waits at most.
        policy: The admission policy.
        oldest_waiter: The oldest waiting request, if any.
        ledger: Totals of the ledger; None without a ledger.
        recent: The last events in the ledger, newest first.
        holders: The largest holders, largest first.
        holders_total: The number of all holders, listed or not.
        waiting: Waiting requests by namespace, longest waiting first.
        outcomes: Number of requests since startup, by outcome.
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
    """The memory of stored messages, which has a separate limit and needs no permits.

    Attributes:
        stored_bytes: The size of the stored messages.
        limit_bytes: The limit on stored_bytes; 0 for none.
        refused: Number of messages refused because of the limit.
    """

    stored_bytes: int
    limit_bytes: int
    refused: int


class LimiterReporter:
    """Makes reports on a server's memory limiter for operators.

    Attributes:
        messages: Returns the memory of stored messages; None if none are stored.
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
        """Return the reports on heap memory and on direct memory.

        Each lists at most ``holders`` holders and ``recent`` ledger events.
        """
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
    """Count the permits of every owner, with pauses in which the event loop serves others.

    An account that is released meanwhile counts as empty.
    """
    for number, account in enumerate(list(semaphore.accounts()), 1):
        count.add(account)
        if number % ACCOUNTS_A_TURN == 0:
            await asyncio.sleep(0)


def owner_name(owner: Hashable | None) -> str:
    """Return the name of a permit owner for the report; for a connection, its peer's address."""
    if isinstance(owner, Connection):
        return owner.peer
    return "unnamed" if owner is None else repr(owner)[:MAX_NAME_LENGTH]


COLUMNS = 100
_LINE = "{:<22} {:<20} {:>13} {:>7} {:>13} {:>7} {:>5} {:>6}"
_HEADINGS = ("connection", "namespace", "bytes", "permits", "of shared", "sharers", "waits", "age")


def limiter_table(
    budgets: Mapping[LimitType, BudgetReport], messages: StoredMessages | None = None
) -> str:
    """Return the reports on heap and direct memory as a text table, one holder a line."""
    lines = [line.rstrip() for one, report in budgets.items() for line in _budget(one, report)]
    if messages is not None:
        lines += _messages(messages)
    return "\n".join(lines)


def _messages(messages: StoredMessages) -> Iterator[str]:
    limit = f"{messages.limit_bytes:,}" if messages.limit_bytes > 0 else "unlimited"
    yield "STORED MESSAGES, bytes"
    yield f"  {messages.stored_bytes:,} of {limit} stored; {messages.refused:,} were refused"
    yield ""


def _budget(limit_type: LimitType, report: BudgetReport) -> Iterator[str]:
    figures = report.statistics
    limit = f"{figures.max_permits:,}" if figures.max_permits > 0 else "unlimited"
    places = f"{figures.max_queue_size:,}" if figures.max_queue_size > 0 else "unlimited"
    yield f"{limit_type.value.upper()} MEMORY, bytes; policy {report.policy}"
    yield (
        f"  {figures.acquired_permits:,} of {limit} held, "
        f"at most {figures.high_water_permits:,} so far"
    )
    if figures.overdrafts_total:
        yield (
            f"  {figures.overdraft_permits:,} beyond the limit; "
            f"that happened {figures.overdrafts_total:,} times"
        )
    yield (
        f"  {figures.queue_size:,} of {places} places in the queue taken, "
        f"each for {report.timeout_seconds:g} s at most"
    )
    if report.oldest_waiter is not None:
        yield from _oldest_waiter(report.oldest_waiter)
    yield ""
    yield from _holders(report)
    yield ""


def _oldest_waiter(waiter: OldestWaiter) -> Iterator[str]:
    yield f"  the oldest, {waiter.age_seconds:.1f} s, is of {_printable(waiter.owner, 60)}"
    yield f"    for {waiter.size_bytes:,} bytes of {_printable(waiter.namespace, 50)}"


def _holders(report: BudgetReport) -> Iterator[str]:
    if not report.holders_total:
        yield "  no memory is held or requested"
        return
    yield _LINE.format(*_HEADINGS)
    for line in report.holders:
        yield _holder(line)
    more = report.holders_total - len(report.holders)
    if more:
        yield f"  and {more:,} more"


def _holder(line: HolderLine) -> str:
    return _LINE.format(
        _end_of(owner_name(line.owner), 22),
        _printable(line.namespace, 20),
        _bytes(line.held),
        f"{line.permits:,}",
        _bytes(line.shared) if line.shared else "-",
        f"{line.sharers:,}" if line.shared else "-",
        f"{line.waiting:,}" if line.waiting else "-",
        "-" if line.age_seconds is None else f"{line.age_seconds:.1f}"[:6].rstrip("."),
    )


def _bytes(size_bytes: int) -> str:
    text = f"{size_bytes:,}"
    return text if len(text) <= 13 else f"{size_bytes / 2**30:,.0f} GiB"


def _printable(text: str, length: int) -> str:
    text = text if len(text) <= length else f"{text[: length - 1]}…"
    return "".join(one if one.isprintable() else "?" for one in text)


def _end_of(name: str, length: int) -> str:
    """Shorten a long name by cutting its beginning, since an address ends with the port."""
    return _printable(name if len(name) <= length else f"…{name[1 - length :]}", length)
