"""The figures of a client for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from client.statistics.instruments import ALL_INSTRUMENTS, attribute_names, values
from client.statistics.statistics import StatisticsReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from client.statistics.statistics import HasStatistics


class ClientMetrics(Collector):
    """A client's figures, read when somebody scrapes; to be made in the client's loop.

    Example:
        REGISTRY.register(ClientMetrics(client))
    """

    def __init__(self, client: HasStatistics) -> None:
        self._reader = StatisticsReader(client)

    def describe(self) -> list[Metric]:
        """Return nothing: the names are not known to clash, and nothing is read to find out."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the client and return all families."""
        statistics = self._reader.read()
        for one in ALL_INSTRUMENTS:
            family = CounterMetricFamily if one.counts else GaugeMetricFamily
            labels = attribute_names(one)
            found = family(one.prometheus_name, one.description, labels=labels)
            for attributes, value in values(one, statistics):
                found.add_metric([attributes[label] for label in labels], value)
            yield found
