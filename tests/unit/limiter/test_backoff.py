"""The wait before a retry."""

import pytest

from limiter.backoff import Backoff


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    delays = [backoff.next() for _ in range(10)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.0, 25.0]


def test_a_delay_is_shortened_by_a_tenth_at_most_and_never_below_the_first() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    delays = [backoff.next() for _ in range(10)]
    assert delays == pytest.approx([0.1, 0.18, 0.36, 0.72, 1.44, 2.88, 5.76, 11.52, 22.5, 22.5])


def test_it_begins_anew_once_it_worked() -> None:
    backoff = Backoff(first_seconds=1.0, most_seconds=8.0, jitter=lambda: 0.0)
    before = [backoff.next() for _ in range(5)]
    backoff.reset()
    assert before == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert backoff.next() == 1.0


@pytest.mark.parametrize(("first", "most"), [(0.1, 25.0), (5.0, 5.0), (10.0, 0.1)])
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_delays_have_bounds_however_often_it_fails(first, most, jitter) -> None:
    backoff = Backoff(first, most, lambda: jitter)
    delays = [backoff.next() for _ in range(3_000)]
    assert min(delays) == min(first, most)
    assert max(delays) <= most


def test_many_do_not_come_back_together() -> None:
    backoffs = [Backoff() for _ in range(20)]
    for backoff in backoffs:
        backoff.next()
    assert len({backoff.next() for backoff in backoffs}) > 1
