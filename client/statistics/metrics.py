"""The figures of a client for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from client.statistics.instruments import ALL_INSTRUMENTS, attribute_names, values
from client.statistics.statistics import StatisticsReader, client_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from client.statistics.statistics import HasStatistics


class ClientMetrics(Collector):
    """A client's figures, read when somebody scrapes; to be made in the client's loop.

    There are none once that loop has ended, or while it does not answer.

    Example:
        REGISTRY.register(ClientMetrics(client))

    Args:
        client: The client.
        name: Its label ``client``; without one the clients of a process are ``client-1`` and so on.
    """

    def __init__(self, client: HasStatistics, name: str | None = None) -> None:
        self._reader = StatisticsReader(client)
        self._name = name or client_name(client)

    def describe(self) -> list[Metric]:
        """Return nothing: the names are not known to clash, and nothing is read to find out."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the client and return all families."""
        try:
            statistics = self._reader.read()
        except TimeoutError:  # it would cost the whole program its metrics
            return
        for one in ALL_INSTRUMENTS:
            family = CounterMetricFamily if one.counts else GaugeMetricFamily
            labels = attribute_names(one)
            found = family(one.prometheus_name, one.description, labels=labels)
            for attributes, value in values(one, self._name, statistics):
                found.add_metric([attributes[label] for label in labels], value)
            yield found
