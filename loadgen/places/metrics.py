"""Prometheus metrics of a run in progress, from the totals that its tasks report."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import accumulate
from operator import mul
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
    """A Prometheus collector of a running load's latest totals, labeled with run and scenario.

    Groups and operations come from the document, so the number of series is small.
    """

    def __init__(self, run: str, scenario: str) -> None:
        self._labels = [run, scenario]
        self.totals = Totals()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics of the run."""
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
        about = "1 for the phase that the run is in."
        phase = GaugeMetricFamily("loadgen_phase", about, labels=[*names, "phase"])
        phase.add_metric([*self._labels, totals.phase], 1)
        yield phase
        about = "From when a request was due until it was answered."
        found = HistogramMetricFamily("loadgen_response_seconds", about, labels=[*names, "group"])
        ends = [seconds_of(bucket) for bucket in range(BUCKETS)]
        edges = [*(f"{end:.6g}" for end in ends[:-1]), "+Inf"]
        for group, latencies in totals.latencies.items():
            buckets = [*zip(edges, map(float, accumulate(latencies)), strict=True)]
            found.add_metric([*self._labels, group], buckets, sum(map(mul, latencies, ends)))
        yield found


@contextmanager
def exported(
    run: str, scenario: str, port: int | None, observer: Callable[[Totals], None]
) -> Iterator[Callable[[Totals], None]]:
    """Serve a run's metrics on a loopback port during a ``with`` block.

    Yields a function to call with new totals, which also passes them to ``observer``.

    With ``port`` None no page is served; port 0 is any free port.

    Raises:
        UsageError: The port cannot be used.
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
        raise UsageError(f"--metrics-port {port} cannot be used: {error.strerror}") from None

    def take(totals: Totals) -> None:
        collector.totals = totals
        observer(totals)

    try:
        yield take
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
