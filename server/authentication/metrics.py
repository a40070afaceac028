"""Metrics of authentication, under upstream's names."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from server.authentication.counters import EXPIRING_MINUTES
from server.metrics.connections import counter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from server.authentication.counters import AuthenticationCounters

_PROVIDER = ["cluster", "provider_name", "auth_method"]


class AuthenticationMetrics(Collector):
    """A collector that reads the counters at each scrape.

    Differs: upstream does not count a valid token of CONNECT.
    """

    def __init__(self, cluster: str, counters: AuthenticationCounters) -> None:
        self._cluster = cluster
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        counted = self._counters
        success = CounterMetricFamily(
            "pulsar_authentication_success", "Accepted credentials", labels=_PROVIDER
        )
        for provider, total in list(counted.successes.items()):
            success.add_metric([self._cluster, *provider], total)
        yield success
        failures = CounterMetricFamily(
            "pulsar_authentication_failures",
            "Refused credentials, by reason",
            labels=[*_PROVIDER, "reason"],
        )
        for refused, total in list(counted.failures.items()):
            failures.add_metric([self._cluster, *refused], total)
        yield failures
        labels = {"cluster": self._cluster}
        yield counter(
            "pulsar_expired_token", "Refused expired tokens", labels,
            counted.expired_tokens,
        )  # fmt: skip
        expiring = HistogramMetricFamily(
            "pulsar_expiring_token_minutes",
            "Remaining life of good tokens when shown",
            labels=["cluster"],
        )
        bounds = [*(f"{minutes}.0" for minutes in EXPIRING_MINUTES), "+Inf"]
        buckets = list(zip(bounds, accumulate(counted.expiring), strict=True))
        expiring.add_metric([self._cluster], buckets, counted.expiring_minutes)
        yield expiring
