"""Metrics of this process, from the operating system and the event loop.

process_* come from prometheus_client's own collector, with the label ``cluster`` of every Pulsar
sample. The event loop's lag is the delay of a callback beyond its due time: above some 50 ms a
process answers all clients late.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from server.metrics.connections import gauge
from server.server_info import METRIC, label_of, server_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.clock import Clock, TimerHandle
    from server.configuration.common import ServerConfig
    from server.tasks.freed_memory import Heap

LAG_INTERVAL_SECONDS = 0.1
LAG_BUCKETS_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ProcessMetrics(Collector):
    """Memory, processor time and open files of this process, with the label ``cluster``."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """Read /proc; yields nothing on other systems than Linux."""
        for family in self._process.collect():
            yield _labelled(family, self._cluster)


class HeapMetrics(Collector):
    """Memory in use, separate from memory kept by allocators."""

    def __init__(self, cluster: str, heap: Heap | None) -> None:
        self._cluster = cluster
        self._heap = heap

    def collect(self) -> Iterator[Metric]:
        """Read Python's and the C library's counters."""
        labels = {"cluster": self._cluster}
        help_text = "Memory blocks in use by Python"
        yield gauge("floodgate_python_blocks", help_text, labels, sys.getallocatedblocks())
        if self._heap is None:
            return
        size = self._heap.size()
        family = GaugeMetricFamily(
            "floodgate_heap_bytes", "The C library's heap, by state", labels=["cluster", "state"]
        )
        family.add_metric([self._cluster, "in_use"], size.in_use_bytes)
        family.add_metric([self._cluster, "free"], size.free_bytes)
        yield family


class ServerInfo(Collector):
    """The keys that decide this server's responses, as labels."""

    def __init__(self, cluster: str, config: Callable[[], ServerConfig]) -> None:
        self._cluster = cluster
        self._config = config

    def collect(self) -> Iterator[Metric]:
        """Yield floodgate_server_info, which is always 1."""
        info = {label_of(key): value for key, value in server_info(self._config()).items()}
        labels = {"cluster": self._cluster, **info}
        yield gauge(
            METRIC, "Version, and effective values of the keys that decide answers", labels, 1
        )


class EventLoopLag(Collector):
    """A histogram of the event loop's delay of callbacks.

    The mutable state is the counts, the sum and the armed timer.
    """

    def __init__(self, cluster: str, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._counts = [0] * (len(LAG_BUCKETS_SECONDS) + 1)
        self._sum_seconds = 0.0
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        """Start measuring, ten times a second."""
        due = self._clock.now() + LAG_INTERVAL_SECONDS
        self._timer = self._clock.call_at(due, self._measure, due)

    def stop(self) -> None:
        """Stop measuring. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def collect(self) -> Iterator[Metric]:
        """Yield floodgate_event_loop_lag_seconds."""
        family = HistogramMetricFamily(
            "floodgate_event_loop_lag_seconds",
            "How late the event loop calls back",
            labels=["cluster"],
        )
        bounds = [*map(str, LAG_BUCKETS_SECONDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(self._counts), strict=True))
        family.add_metric([self._cluster], buckets, self._sum_seconds)
        yield family

    def _measure(self, due: float) -> None:
        lag_seconds = max(0.0, self._clock.now() - due)
        self._counts[bisect_left(LAG_BUCKETS_SECONDS, lag_seconds)] += 1
        self._sum_seconds += lag_seconds
        self.start()


def _labelled(family: Metric, cluster: str) -> Metric:
    labelled = Metric(family.name, family.documentation, family.type)
    labelled.samples = [
        sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples
    ]
    return labelled
