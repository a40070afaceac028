"""The figures of a run while it lasts, as Prometheus metrics: made of the tasks' totals."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from loadgen.engine.totals import BUCKETS, Totals, seconds_of
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_REQUESTS = ("group", "operation", "outcome")
_CLIENT_EVENTS = "What happened to clients: started, back, refused, lost, connection-lost, ..."


class RunCollector(Collector):
    """Tells the latest totals, with the labels run, scenario and group.

    Groups and operations are those of the document, so that there are never many series.
    """

    def __init__(self, run: str, scenario: str) -> None:
        self._labels = [run, scenario]
        self.totals = Totals()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        names, totals = ["run", "scenario"], self.totals
        for name, about, labels, counts in (
            ("loadgen_requests", "Requests that ended.", _OF_REQUESTS, totals.ended),
            ("loadgen_client_events", _CLIENT_EVENTS, ("group", "what"), totals.clients),
            ("loadgen_connections", "Connections that shook hands.", (), {"": totals.connected}),
            ("loadgen_received_bytes", "Bytes that were read.", (), {"": totals.bytes}),
        ):
            counter = CounterMetricFamily(name, about, labels=[*names, *labels])
            for text, count in counts.items():
                values = text.split(maxsplit=len(labels) - 1)
                counter.add_metric([*self._labels, *values], count)
            yield counter
        phase = GaugeMetricFamily(
            "loadgen_phase", "1 for the phase that the run is in.", labels=[*names, "phase"]
        )
        phase.add_metric([*self._labels, totals.phase], 1)
        yield phase
        yield self._latencies()

    def _latencies(self) -> Metric:
        found = HistogramMetricFamily(
            "loadgen_response_seconds",
            "From when a request was due until it was answered.",
            labels=["run", "scenario", "group"],
        )
        for group, counts in self.totals.latencies.items():
            below, sum_seconds, buckets = 0, 0.0, []
            for bucket, count in enumerate(counts):
                below += count
                sum_seconds += count * seconds_of(bucket)
                edge = f"{seconds_of(bucket):.6g}" if bucket < BUCKETS - 1 else "+Inf"
                buckets.append((edge, below))
            found.add_metric([*self._labels, group], buckets, sum_seconds)
        return found


@contextmanager
def exported(
    run: str, scenario: str, port: int | None, observer: Callable[[Totals], None]
) -> Iterator[Callable[[Totals], None]]:
    """Serve a run's metrics at a port of the loopback for a block; yield a taker of totals.

    Without a port nothing is served; port 0 is any that is free. The observer is told them, too.

    Raises:
        UsageError: The port cannot be had.
    """
    collector = RunCollector(run, scenario)
    if port is None:
        yield observer
        return
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except OSError as error:
        raise UsageError(f"--metrics-port {port} cannot be had: {error.strerror}") from None

    def take(totals: Totals) -> None:
        collector.totals = totals
        observer(totals)

    try:
        yield take
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
