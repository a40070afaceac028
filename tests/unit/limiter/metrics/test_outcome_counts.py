"""Outcomes of requests for memory, counted once for all readers."""

from limiter.memory.dual_limiter import LimitType
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.permits.permit import AcquireOutcome
from tests.support.clocks.manual_clock import ManualClock

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY


def test_every_outcome_is_counted_for_its_budget() -> None:
    tally = OutcomeCounts(ManualClock())
    tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 5)
    tally.observe(HEAP, AcquireOutcome.QUEUE_FULL, 0.0)
    assert tally.of(HEAP).outcomes == {
        **dict.fromkeys(AcquireOutcome, 0),
        AcquireOutcome.GRANTED: 5,
        AcquireOutcome.QUEUE_FULL: 1,
    }
    assert set(tally.of(DIRECT).outcomes.values()) == {0}


def test_the_listener_is_notified_only_of_waits() -> None:
    tally = OutcomeCounts(ManualClock())
    heard: list[tuple[LimitType, float, int]] = []
    tally.listen(lambda *wait: heard.append(wait))
    for seconds, outcome in enumerate(AcquireOutcome):
        tally.observe(DIRECT, outcome, float(seconds))
    tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 1000)
    # Granted, granted beyond the limit, timed out
    assert heard == [(DIRECT, 0.0, 1), (DIRECT, 1.0, 1), (DIRECT, 2.0, 1), (HEAP, 0.0, 1000)]
