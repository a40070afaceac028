"""Metrics of faults: number of active faults, and of their actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from server.metrics.connections import gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from server.faults.registry import FaultRegistry


class FaultMetrics(Collector):
    """The metrics of a server's faults."""

    def __init__(self, cluster: str, registry: FaultRegistry) -> None:
        self._labels = {"cluster": cluster}
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        yield gauge("floodgate_faults", "Faults set", self._labels, len(self._registry))
        acted = CounterMetricFamily(
            "floodgate_faults_acted",
            "Commands a fault acted on",
            labels=[*self._labels, "action"],
        )
        for action, count in sorted(self._registry.acted.items()):
            acted.add_metric([*self._labels.values(), action], count)
        yield acted
