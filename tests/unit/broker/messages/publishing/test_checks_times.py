"""A topic's index of publish times."""

from broker.messages.publishing.checks import MOST_AHEAD_MS, PublishTimes
from tests.support.clocks.manual_clock import ManualClock


def taken(clock: ManualClock, times: PublishTimes, *said: int) -> list[int]:
    found = []
    for one in said:
        times.last = times.next(one)
        found.append(times.last)
    return found


def test_rising_publish_times_are_accepted_up_to_an_hour_ahead() -> None:
    clock = ManualClock(10_000.0)
    now = clock.wall_ms()
    said = (0, 1, now, now + 1, now + MOST_AHEAD_MS)
    assert taken(clock, PublishTimes(clock), *said) == list(said)


def test_far_future_times_become_now_and_earlier_times_the_last_time() -> None:
    clock = ManualClock(10_000.0)
    now, times = clock.wall_ms(), PublishTimes(clock)
    assert taken(clock, times, 2**64 - 1, 7, now + MOST_AHEAD_MS + 1) == [now, now, now]
    clock.advance(1)
    assert taken(clock, times, 2**63, now) == [now + 1_000] * 2


def test_publish_times_restart_after_the_clock_is_set_back() -> None:
    clock = ManualClock(100_000.0)
    ahead, times = clock.wall_ms(), PublishTimes(clock)
    taken(clock, times, ahead)
    clock.set_wall(-3 * MOST_AHEAD_MS / 1000)
    now = clock.wall_ms()
    assert taken(clock, times, now, now + 5, now) == [now, now + 5, now + 5]
