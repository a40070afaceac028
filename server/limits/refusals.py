"""Counters of refusals at limits of connections and requests, by limit."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric


class Limit(StrEnum):
    """A limit with refusals; the value is the metric's label."""

    CONNECTIONS = "connections"
    CONNECTIONS_OF_ADDRESS = "connections_of_address"
    HANDSHAKE = "handshake_time"
    REQUEST_RATE = "request_rate"
    UNFINISHED_FRAMES = "unfinished_frames"
    HTTP_CONNECTIONS = "http_connections"
    HTTP_CONCURRENT = "http_concurrent"
    HTTP_RATE = "http_rate"
    HTTP_BODY_BYTES = "http_body_bytes"
    HTTP_HEADER_BYTES = "http_header_bytes"
    HTTP_TIME = "http_time"


class Refusals:
    """The number of refusals at each limit."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Limit, 0)

    def add(self, limit: Limit) -> None:
        """Count a refusal."""
        self.counts[limit] += 1


class LimitMetrics(Collector):
    """The metrics of refusals, and of the kept bytes of incomplete frames."""

    def __init__(
        self, cluster: str, refusals: Refusals, unfinished_bytes: Callable[[], int]
    ) -> None:
        self._cluster = cluster
        self._refusals = refusals
        self._unfinished_bytes = unfinished_bytes

    def collect(self) -> Iterator[Metric]:
        """Yield two families: the first has a sample per limit."""
        family = CounterMetricFamily(
            "floodgate_limit_refusals",
            "Connections and requests refused at a limit of their number, rate, size or time",
            labels=["cluster", "limit"],
        )
        for limit, count in self._refusals.counts.items():
            family.add_metric([self._cluster, limit.value], count)
        yield family
        kept = GaugeMetricFamily(
            "floodgate_unfinished_frame_bytes",
            "Bytes kept of unfinished frames, above 64 KiB each",
            labels=["cluster"],
        )
        kept.add_metric([self._cluster], self._unfinished_bytes())
        yield kept
