import math

from broker.messages.publishing.latency import PublishLatency


def observed(*millis: float) -> PublishLatency:
    latency = PublishLatency()
    for one in millis:
        latency.observe(one / 1000)
    return latency


def test_a_quantile_is_the_bound_of_its_bucket() -> None:
    latency = observed(0.1, 0.5, 3, 7, 5_000)
    parts = (0.0, 0.2, 0.4, 0.5, 0.8, 0.81, 1.0)
    assert [latency.quantile_ms(one) for one in parts] == [0.5, 0.5, 0.5, 5, 10, math.inf, math.inf]
    assert math.isnan(PublishLatency().quantile_ms(0.5))


def test_a_period_has_what_came_since_the_one_before() -> None:
    latency = observed(0.1, 3)
    latency.period_ended()
    latency.observe(0.003)
    latency.period_ended()
    assert latency.last_counts == (0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
    assert math.isclose(latency.last_seconds, 0.003)
    assert latency.count == 3


def test_those_of_another_are_added() -> None:
    latency = observed(0.1)
    latency.add(observed(0.1, 3))
    assert (latency.counts[0], latency.counts[2], latency.count) == (2, 1, 3)
    assert math.isclose(latency.total_seconds, 0.0032)
