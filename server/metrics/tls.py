"""Metrics of TLS: handshakes, and reloads of certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from server.metrics.connections import gauge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server.tls.handshakes import TlsHandshakes
    from server.tls.refreshed import RefreshedContext


class TlsMetrics(Collector):
    """A collector that reads the counters of TLS at each scrape.

    Args:
        cluster: Label of every sample.
        handshakes: Of all ports.
        contexts: Certificates, by purpose.
    """

    def __init__(
        self, cluster: str, handshakes: TlsHandshakes, contexts: Mapping[str, RefreshedContext]
    ) -> None:
        self._cluster = cluster
        self._handshakes = handshakes
        self._contexts = contexts

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        labels = {"cluster": self._cluster}
        under_way = "Unfinished TLS handshakes of clients"
        yield gauge("floodgate_tls_handshakes", under_way, labels, self._handshakes.under_way)
        ended = CounterMetricFamily(
            "floodgate_tls_handshakes_ended",
            "Ended TLS handshakes of clients",
            labels=["cluster", "outcome"],
        )
        for outcome, total in (
            ("finished", self._handshakes.finished_total),
            ("failed", self._handshakes.failed_total),
            ("timed_out", self._handshakes.timed_out_total),
        ):
            ended.add_metric([self._cluster, outcome], total)
        yield ended
        refreshes = CounterMetricFamily(
            "floodgate_tls_refreshes",
            "Reloads of changed certificate files",
            labels=["cluster", "of", "outcome"],
        )
        for name, contexts in self._contexts.items():
            refreshes.add_metric([self._cluster, name, "used"], contexts.refreshed_total)
            refreshes.add_metric([self._cluster, name, "unusable"], contexts.failed_total)
        yield refreshes
        expires = GaugeMetricFamily(
            "floodgate_tls_certificate_expires_timestamp_seconds",
            "Earliest expiry of the shown certificates, Unix seconds",
            labels=["cluster", "of"],
        )
        for name, contexts in self._contexts.items():
            if contexts.expires_at is not None:
                expires.add_metric([self._cluster, name], contexts.expires_at)
        yield expires
