"""Metric of HTTP requests, under the name used by a real server's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from server.limits.http import HttpLimits


class HttpMetrics(Collector):
    """The number of a web port's requests (upstream: JettyStatisticsCollector)."""

    def __init__(self, cluster: str, limits: HttpLimits) -> None:
        self._labels = {"cluster": cluster}
        self._limits = limits

    def collect(self) -> Iterator[Metric]:
        """Yield the family."""
        help_text = "HTTP requests, also refused ones"
        yield counter("jetty_requests", help_text, self._labels, self._limits.requests)
