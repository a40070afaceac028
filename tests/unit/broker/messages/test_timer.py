"""A timer that runs at most once at a time."""

from broker.messages.timer import Timer
from tests.support.clocks.manual_clock import ManualClock


def test_a_running_timer_is_not_started_again_and_an_ended_or_cancelled_timer_is() -> None:
    clock, ended = ManualClock(), list[str]()
    timer = Timer(clock)
    timer.start(2.0, lambda: ended.append("first"))
    timer.start(1.0, lambda: ended.append("meanwhile"))
    clock.advance(2.0)
    assert (ended, timer.runs) == (["first"], False)
    timer.start(1.0, lambda: ended.append("cancelled"))
    timer.cancel()
    timer.start(1.0, lambda: ended.append("again"))
    assert timer.runs
    clock.advance(1.0)
    assert (ended, timer.runs) == (["first", "again"], False)
