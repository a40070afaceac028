"""Metrics of forwarded HTTP requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from proxy.forwarding.forwarder import Forwarder

_COUNTERS = {
    "answered": "HTTP requests answered by a broker",
    "refused": "HTTP requests refused: too many forwarded",
    "failed": "HTTP requests without a complete answer",
    "redirects": "Followed redirects of brokers",
}


class ForwardingMetrics(Collector):
    """A collector that reads a forwarder's counters at each scrape."""

    def __init__(self, cluster: str, forwarder: Forwarder) -> None:
        self._cluster = cluster
        self._forwarder = forwarder

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        labels = {"cluster": self._cluster}
        counters = self._forwarder.counters
        yield gauge(
            "floodgate_proxy_http_requests",
            "HTTP requests being forwarded",
            labels,
            counters.active,
        )
        yield gauge(
            "floodgate_proxy_http_replay_bytes",
            "Bytes of request bodies kept for redirects",
            labels,
            self._forwarder.replay.held_bytes,
        )
        for name, documentation in _COUNTERS.items():
            family = f"floodgate_proxy_http_{name}"
            yield counter(family, documentation, labels, getattr(counters, name))
