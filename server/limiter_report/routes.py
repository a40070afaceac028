"""REST routes ``/admin/v2/floodgate/limiter``, with reports on the memory limiter.

``limit`` bounds the listed holders of each budget, and the listed waiting namespaces (100),
``recent`` the events of the ledger (none), and ``format=table`` is for people.

``GET /admin/v2/floodgate/limiter/history`` returns the last ten minutes, a list for each figure.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from limiter.clock import Timer
from limiter.memory.dual_limiter import LimitType
from limiter.metrics.topic_list import budgets_now
from limiter.permits.ledger import RECENT_EVENTS
from limiter.permits.permit import AcquireOutcome
from server.http import RestError
from server.limiter_report.report import MAX_NAME_LENGTH, limiter_table, owner_name

if TYPE_CHECKING:
    from limiter.clock import Clock
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.topic_list import BudgetSnapshot, HasStatistics
    from limiter.permits.holder_lines import HolderLine
    from limiter.permits.ledger import EventTotal, LedgerEntry
    from limiter.permits.permit import SemaphoreStatistics
    from server.limiter_report.report import (
        BudgetReport,
        LimiterReporter,
        NamespaceWaiters,
        OldestWaiter,
        StoredMessages,
    )

EACH_SECONDS = 2.0
KEPT = 300
"""Kept moments, for ten minutes."""
_REFUSED_AT_ONCE = (AcquireOutcome.QUEUE_FULL, AcquireOutcome.OVERSIZED, AcquireOutcome.STALLED)


class BudgetMoment(NamedTuple):
    """A sample of one memory limit; the last two fields count since startup."""

    held_bytes: int
    waiting: int
    oldest_seconds: float
    refused: int
    timed_out: int


class Moment(NamedTuple):
    """A sample of heap and direct memory at the same time."""

    at_ms: int
    budgets: dict[LimitType, BudgetMoment]


class LimiterHistory:
    """Samples of the memory limiter, taken every two seconds in the last ten minutes.

    Bound: KEPT moments; the oldest is evicted.

    The mutable state is the moments and the armed timer.

    Attributes:
        moments: The samples, oldest first.
    """

    def __init__(self, limiter: HasStatistics, tally: OutcomeCounts, clock: Clock) -> None:
        self.moments: deque[Moment] = deque(maxlen=KEPT)
        self._limiter = limiter
        self._tally = tally
        self._clock = clock
        self._timer = Timer(clock)

    def now(self) -> Moment:
        """Return a sample of both memory limits, without adding it to the history."""
        seen = budgets_now(self._limiter, self._tally)
        return Moment(self._clock.wall_ms(), {one.limit_type: moment_of(one) for one in seen})

    def start(self) -> None:
        """Sample the memory limits now, and then every two seconds."""
        self.moments.append(self.now())
        self._timer.after(EACH_SECONDS, self.start)

    def stop(self) -> None:
        """Stop sampling the memory limits; may be called repeatedly."""
        self._timer.stop()


def moment_of(budget: BudgetSnapshot) -> BudgetMoment:
    """Return a sample of one memory limit, for the history."""
    outcomes, now = budget.tally.outcomes, budget.statistics
    return BudgetMoment(
        held_bytes=now.acquired_permits,
        waiting=now.queue_size,
        oldest_seconds=round(now.oldest_waiter_seconds, 1),
        refused=sum(outcomes[each] for each in _REFUSED_AT_ONCE),
        timed_out=outcomes[AcquireOutcome.TIMED_OUT],
    )


LIMITER_PATH = "/admin/v2/floodgate/limiter"
HISTORY_PATH = f"{LIMITER_PATH}/history"
DEFAULT_HOLDERS = 100
MAX_HOLDERS = 500
FORMATS = ("json", "table")
_HISTORY = {
    "heldBytes": "held_bytes",
    "waiting": "waiting",
    "oldestSeconds": "oldest_seconds",
    "refused": "refused",
    "timedOut": "timed_out",
}


def limiter_routes(
    reporter: LimiterReporter, history: LimiterHistory
) -> list[web.AbstractRouteDef]:
    """Return the REST routes with the limiter's present report and its last ten minutes."""

    async def limiter(request: web.Request) -> web.Response:
        holders = _number(request, "limit", DEFAULT_HOLDERS, MAX_HOLDERS)
        recent = _number(request, "recent", 0, RECENT_EVENTS)
        form = request.query.get("format", FORMATS[0])
        if form not in FORMATS:
            raise RestError(412, f"format={form[:20]!r} should be one of: {', '.join(FORMATS)}")
        budgets = await reporter.report(holders, recent)
        messages = None if reporter.messages is None else reporter.messages()
        if form == "table":
            return web.Response(text=limiter_table(budgets, messages))
        shown: dict[str, object] = {
            one.value: _budget(report, holders) for one, report in budgets.items()
        }
        if messages is not None:
            shown["messages"] = _messages(messages)
        return web.json_response(shown)

    async def last_minutes(_: web.Request) -> web.Response:
        return web.json_response(_history(history))

    return [web.get(LIMITER_PATH, limiter), web.get(HISTORY_PATH, last_minutes)]


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise RestError(412, f"{name}={text[:20]!r} should be a whole number from 0 to {most}")
    return int(text)


def _budget(report: BudgetReport, most: int) -> dict[str, object]:
    return {
        **_figures(report.statistics),
        "timeoutSeconds": report.timeout_seconds,
        "policy": report.policy,
        "oldestWaiter": None if report.oldest_waiter is None else _waiter(report.oldest_waiter),
        "outcomes": {outcome.name.lower(): n for outcome, n in report.outcomes.items()},
        "ledger": _ledger(report),
        "waitingNamespaces": len(report.waiting),
        "waiting": [_waiting(line) for line in report.waiting[:most]],
        "holdersTotal": report.holders_total,
        "holders": [_holder(line) for line in report.holders],
    }


def _figures(statistics: SemaphoreStatistics) -> dict[str, object]:
    unbounded = statistics.max_permits <= 0
    return {
        "limitBytes": statistics.max_permits,
        "acquiredBytes": statistics.acquired_permits,
        "availableBytes": None if unbounded else statistics.available_permits,
        "highWaterBytes": statistics.high_water_permits,
        "overdraftBytes": statistics.overdraft_permits,
        "overdraftsTotal": statistics.overdrafts_total,
        "queueSize": statistics.queue_size,
        "maxQueueSize": statistics.max_queue_size,
    }


def _messages(messages: StoredMessages) -> dict[str, object]:
    return {
        "limitBytes": messages.limit_bytes,
        "storedBytes": messages.stored_bytes,
        "refused": messages.refused,
    }


def _waiter(waiter: OldestWaiter) -> dict[str, object]:
    return {
        "connection": waiter.owner,
        "namespace": waiter.namespace[:MAX_NAME_LENGTH],
        "bytes": waiter.size_bytes,
        "lackingBytes": waiter.lacking_bytes,
        "ageSeconds": _seconds(waiter.age_seconds),
    }


def _ledger(report: BudgetReport) -> dict[str, object] | None:
    if report.ledger is None:
        return None
    return {
        "livePermits": report.ledger.live_permits,
        "acquired": _total(report.ledger.acquired),
        "updated": _total(report.ledger.updated),
        "released": _total(report.ledger.released),
        "recent": [_event(entry) for entry in report.recent],
    }


def _total(total: EventTotal) -> dict[str, object]:
    return {"events": total.events, "bytes": total.size_bytes}


def _event(entry: LedgerEntry) -> dict[str, object]:
    return {
        "event": entry.event.value,
        "connection": entry.owner,
        "namespace": entry.namespace[:MAX_NAME_LENGTH],
        "bytes": entry.size_bytes,
        "heldSeconds": _seconds(entry.held_seconds),
        "agoSeconds": _seconds(entry.ago_seconds),
    }


def _holder(line: HolderLine) -> dict[str, object]:
    return {
        "connection": owner_name(line.owner),
        "namespace": line.namespace[:MAX_NAME_LENGTH],
        "bytes": line.held,
        "permits": line.permits,
        "sharedBytes": line.shared,
        "sharers": line.sharers,
        "waitingRequests": line.waiting,
        "waitingBytes": line.lacking,
        "oldestPermitSeconds": None if line.age_seconds is None else _seconds(line.age_seconds),
    }


def _waiting(line: NamespaceWaiters) -> dict[str, object]:
    return {
        "namespace": line.namespace[:MAX_NAME_LENGTH],
        "requests": line.requests,
        "lackingBytes": line.lacking_bytes,
        "oldestSeconds": _seconds(line.oldest_seconds),
    }


def _history(history: LimiterHistory) -> dict[str, object]:
    moments = [*history.moments, history.now()]
    budgets = {
        one.value: {
            name: [getattr(moment.budgets[one], field) for moment in moments]
            for name, field in _HISTORY.items()
        }
        for one in LimitType
    }
    at = [moment.at_ms for moment in moments]
    return {"eachSeconds": EACH_SECONDS, "kept": KEPT, "atMs": at, **budgets}


def _seconds(seconds: float) -> float:
    return round(seconds, 3)
