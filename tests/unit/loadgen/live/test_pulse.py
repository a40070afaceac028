"""Pace and percentiles are of the last seconds, not of the whole run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.clients.latency_buckets import BUCKETS, bucket_of, percentile, seconds_of
from loadgen.clients.records import Outcome, RequestCounters
from loadgen.live.pulse import WINDOW_SECONDS, Pulse
from loadgen.results.latency import nearest_rank


def test_what_was_long_ago_counts_no_more() -> None:
    # Given a second of slow answers, then a long time of quick ones
    moment = 0.0
    pulse, total = Pulse(lambda: moment), RequestCounters()
    for seconds, latency in ((1, 20.0), (2 * int(WINDOW_SECONDS), 0.1)):
        for _ in range(seconds):
            moment += 1
            for _ in range(10):
                total.started += 1
                total.count(Outcome.ANSWERED, seconds=latency)
            # When
            pulse.add(RequestCounters().plus(total))
    # Then
    assert pulse.ended_per_second == 10
    assert pulse.percentile(0.99) == pytest.approx(0.1, rel=0.25)
    assert pulse.seconds == moment - 1


def test_before_anything_has_come_there_is_nothing() -> None:
    pulse = Pulse(lambda: 0.0)
    assert (pulse.percentile(0.5), pulse.seconds, pulse.ended_per_second) == (None, None, 0.0)


@given(st.floats(0, 1e9))
def test_a_latency_is_in_the_bucket_that_ends_behind_it(seconds: float) -> None:
    bucket = bucket_of(seconds)
    assert bucket == BUCKETS - 1 or seconds <= seconds_of(bucket) * (1 + 1e-9)
    assert bucket == 0 or seconds > seconds_of(bucket - 1) * (1 - 1e-9)


@given(st.lists(st.floats(0.001, 600), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_at_most_a_bucket_too_long(latencies: list[float], share: float) -> None:
    # Given
    counts = [0] * BUCKETS
    for seconds in latencies:
        counts[bucket_of(seconds)] += 1
    # When
    found = percentile(counts, share)
    # Then
    exact = nearest_rank(sorted(latencies), share)
    assert found is not None
    assert exact * (1 - 1e-6) <= found <= max(exact, 0.001) * 1.25 * (1 + 1e-6)
