"""The wait before a retry."""

import pytest

from limiter.backoff import Backoff


def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    delays = [backoff.next() for _ in range(10)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.0, 25.0]


def test_a_delay_is_shortened_by_at_most_a_tenth_and_never_below_the_first() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    delays = [backoff.next() for _ in range(10)]
    assert delays == pytest.approx([0.1, 0.18, 0.36, 0.72, 1.44, 2.88, 5.76, 11.52, 22.5, 22.5])


def test_a_reset_restarts_with_the_first_delay() -> None:
    backoff = Backoff(first_seconds=1.0, most_seconds=8.0, jitter=lambda: 0.0)
    before = [backoff.next() for _ in range(5)]
    backoff.reset()
    assert before == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert backoff.next() == 1.0


@pytest.mark.parametrize(("first", "most"), [(0.1, 25.0), (5.0, 5.0), (10.0, 0.1)])
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_delays_stay_within_bounds_after_any_number_of_failures(first, most, jitter) -> None:
    backoff = Backoff(first, most, lambda: jitter)
    delays = [backoff.next() for _ in range(3_000)]
    assert min(delays) == min(first, most)
    assert max(delays) <= most


def test_jitter_spreads_the_delays_of_many_retries() -> None:
    backoffs = [Backoff() for _ in range(20)]
    for backoff in backoffs:
        backoff.next()
    assert len({backoff.next() for backoff in backoffs}) > 1
