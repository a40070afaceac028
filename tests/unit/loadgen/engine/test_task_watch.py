"""A task observes the event loop: blockages count for their duration."""

from __future__ import annotations

from array import array

from loadgen.engine.context import RunTime
from loadgen.engine.task_watch import PROBE_SECONDS, TaskWatch
from tests.support.clocks.manual_clock import ManualClock


def test_the_lag_of_the_event_loop_counts_from_the_start_of_the_run() -> None:
    # Given a watch that began half a second before T0, and a loop that is busy now and then
    clock, behind = ManualClock(), [0.0]
    watch = TaskWatch(clock, RunTime(lambda: clock.now() + behind[0], clock.now() + 0.5))
    watch.begin()
    clock.advance(0.5)
    for late in (0.01, 0.02, 0.01):
        behind[0] += late
        clock.advance(PROBE_SECONDS)
    told = watch.end([0.001] * 99 + [0.05])
    assert round(told["loop_lag_max_seconds"], 6) == 0.02
    assert told["loop_lag_p99_seconds"] == told["loop_lag_max_seconds"]
    assert (told["moments"], told["lag_p99_seconds"]) == (100, 0.001)
    assert round(told["measured_seconds"], 6) == round(3 * PROBE_SECONDS + 0.04, 6)
    assert told["cpu_seconds"] >= 0
    assert told["descriptors"] > 2


def watched(held_up_seconds: float, probes_before: int, probes_behind: int) -> array[float]:
    """Return the lags seen while a loop was blocked once."""
    clock, behind = ManualClock(), [0.0]
    watch = TaskWatch(clock, RunTime(lambda: clock.now() + behind[0], clock.now()))
    watch.begin()
    clock.advance(probes_before * PROBE_SECONDS)
    behind[0] = held_up_seconds
    clock.advance(probes_behind * PROBE_SECONDS)
    watch.end([])
    return watch._loop_lags


def test_a_blocked_event_loop_is_late_for_every_probe_due_meanwhile() -> None:
    # Two seconds of ten: a fifth of all probes, and not a single probe of many.
    lags = watched(held_up_seconds=2.0, probes_before=80, probes_behind=80)
    late = [lag for lag in lags if lag > PROBE_SECONDS / 2]
    assert abs(len(lags) - 200) <= 1
    assert abs(len(late) - 40) <= 1
    assert round(max(late), 6) >= 1.95


def test_an_event_loop_blocked_until_the_end_is_late() -> None:
    lags = watched(held_up_seconds=1.0, probes_before=20, probes_behind=0)
    assert abs(len(lags) - 40) <= 1
    assert max(lags) > 0.9


def test_a_watch_that_never_began_reports_only_zeros() -> None:
    clock = ManualClock()
    told = TaskWatch(clock, RunTime(clock.now, clock.now() + 9)).end([])
    assert {value for name, value in told.items() if name != "descriptors"} == {0}
