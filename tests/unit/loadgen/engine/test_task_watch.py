from __future__ import annotations

from loadgen.engine.context import RunTime
from loadgen.engine.task_watch import PROBE_SECONDS, TaskWatch
from tests.support.clocks.manual_clock import ManualClock


def test_the_loops_lag_counts_from_t0_on() -> None:
    # Given a watch that is begun half a second before T0, and a loop that is busy now and then
    clock, behind = ManualClock(), [0.0]
    watch = TaskWatch(clock, RunTime(lambda: clock.now() + behind[0], clock.now() + 0.5))
    watch.begin()
    clock.advance(0.5)
    # When
    for late in (0.01, 0.3, 0.02):
        behind[0] += late
        clock.advance(PROBE_SECONDS)
    told = watch.end([0.001] * 99 + [0.05])
    # Then
    assert round(told["loop_lag_max_seconds"], 6) == 0.3
    assert told["loop_lag_p99_seconds"] == told["loop_lag_max_seconds"]
    assert (told["moments"], told["lag_p99_seconds"]) == (100, 0.001)
    assert round(told["measured_seconds"], 6) == round(3 * PROBE_SECONDS + 0.33, 6)
    assert told["cpu_seconds"] >= 0
    assert told["descriptors"] > 2


def test_a_watch_that_never_began_tells_nothing() -> None:
    clock = ManualClock()
    told = TaskWatch(clock, RunTime(clock.now, clock.now() + 9)).end([])
    assert {value for name, value in told.items() if name != "descriptors"} == {0}
