"""Export of a client's statistics to Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.statistics.instruments import INSTRUMENTS
from client.statistics.statistics import StatisticsReader, client_name
from limiter.extras import extra
from limiter.metrics.prometheus import family

with extra("prometheus"):
    from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from client.statistics.statistics import HasStatistics


class ClientMetrics(Collector):
    """A Prometheus collector of a client's statistics.

    Create it in the client's event loop; it reads the statistics at each scrape. It yields no
    metrics after the loop has ended, or while the loop does not answer.

    Example:
        REGISTRY.register(ClientMetrics(client))

    Args:
        client: The client.
        name: Value of the label ``client``; by default ``client-1`` and so on.
    """

    def __init__(self, client: HasStatistics, name: str | None = None) -> None:
        self._reader = StatisticsReader(client)
        self._labels = {"client": name or client_name(client)}

    def describe(self) -> list[Metric]:
        """Return nothing, so that Prometheus skips its check for duplicate metric names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the client's statistics, and yield all metric families."""
        try:
            statistics = self._reader.read()
        except TimeoutError:  # an error would cost the program all of its metrics
            return
        for row in INSTRUMENTS:
            yield family(row, statistics, self._labels)
