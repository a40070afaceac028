import math

from broker.messages.statistics import (
    LATENCY_BUCKETS_MS,
    SIZE_BUCKETS,
    Histogram,
    PublishStatistics,
)


def observed(*millis: float) -> Histogram:
    latency = Histogram(LATENCY_BUCKETS_MS.values())
    for one in millis:
        latency.add(one)
    return latency


def test_a_quantile_is_the_bound_of_its_bucket() -> None:
    latency = observed(0.1, 0.5, 3, 7, 5_000)
    parts = (0.0, 0.2, 0.4, 0.5, 0.8, 0.81, 1.0)
    assert [latency.quantile(one) for one in parts] == [0.5, 0.5, 0.5, 5, 10, math.inf, math.inf]
    assert math.isnan(observed().quantile(0.5))


def test_a_period_counts_only_values_since_the_previous_period() -> None:
    sizes = Histogram(SIZE_BUCKETS.values())
    sizes.add(128)
    sizes.period_ended()
    for size in (129, 2_000_000):
        sizes.add(size)
    sizes.period_ended()
    assert sizes.last_counts == (0, 1, 0, 0, 0, 0, 0, 0, 1)
    assert sizes.last_total == 2_000_129
    assert (sizes.count, sizes.total) == (3, 2_000_257)


def test_the_values_of_another_histogram_are_added() -> None:
    latency = observed(0.1)
    latency.add_all(observed(0.1, 3))
    assert (latency.counts[0], latency.counts[2], latency.count) == (2, 1, 3)
    assert math.isclose(latency.total, 3.2)


def test_the_usual_publish_rates_rise_at_once_and_fall_by_half() -> None:
    statistics, usual = PublishStatistics(), []
    for messages in (100, 0, 0, 300):
        statistics.messages += messages
        statistics.size_bytes += 10 * messages
        statistics.period_ended(10)
        usual.append(statistics.usual)
    assert usual == [(10, 100), (5, 50), (2.5, 25), (30, 300)]
