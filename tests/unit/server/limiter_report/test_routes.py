"""The last ten minutes are kept, and no more."""

import pytest

from limiter.errors import PermitAcquireQueueFullError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.metrics.outcome_counts import OutcomeCounts
from server.limiter_report.routes import EACH_SECONDS, KEPT, BudgetMoment, LimiterHistory
from tests.support.clocks.manual_clock import ManualClock

HEAP, DIRECT = LimitType


def watched(clock: ManualClock) -> tuple[AsyncDualMemoryLimiter, LimiterHistory]:
    limit = MemoryLimit(1000, 1, 3.0)
    limiter, tally = AsyncDualMemoryLimiter(limit, limit, clock), OutcomeCounts(clock)
    limiter.observe_with(tally.observe)
    return limiter, LimiterHistory(limiter, tally, clock)


async def test_each_moment_records_holders_waiters_and_refusals() -> None:
    clock = ManualClock()
    limiter, history = watched(clock)
    await limiter.acquire(HEAP, 900, None, "holder")
    # The second of three has no place in the queue, and the first waits in vain
    history.start()
    clock.advance(1.0)
    limiter.request(HEAP, 200, "first")
    with pytest.raises(PermitAcquireQueueFullError):
        limiter.request(HEAP, 200, "second")
    clock.advance(4.0)
    moments = [moment.budgets[HEAP] for moment in history.moments]
    assert moments == [
        BudgetMoment(900, 0, 0.0, 0, 0),
        BudgetMoment(900, 1, 1.0, 1, 0),
        BudgetMoment(900, 0, 0.0, 1, 1),
    ]
    assert history.moments[1].at_ms - history.moments[0].at_ms == EACH_SECONDS * 1000
    assert history.moments[2].budgets[DIRECT] == BudgetMoment(0, 0, 0.0, 0, 0)
    history.stop()


async def test_ten_minutes_of_history_are_kept_until_stopped() -> None:
    clock = ManualClock()
    _, history = watched(clock)
    history.start()
    clock.advance(EACH_SECONDS * (KEPT + 50))
    history.stop()
    last = history.moments[-1].at_ms
    clock.advance(60.0)
    assert KEPT * EACH_SECONDS == 600
    assert len(history.moments) == KEPT
    assert history.moments[-1].at_ms == last == clock.wall_ms() - 60_000
