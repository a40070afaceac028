"""Prometheus metrics built from tables of metric definitions, and those of topic-list memory.

prometheus_client's Summary has no quantiles, so the families are built here, sample by sample.

Source: upstream TopicListMemoryLimiter; names, types and labels as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, Literal

from limiter.extras import extra
from limiter.metrics.instruments import Kind, SourceT
from limiter.metrics.topic_list import OWN_INSTRUMENTS, PULSAR_INSTRUMENTS, budgets_now

with extra("prometheus"):
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.metrics.instruments import Instrument, Table
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.topic_list import HasStatistics

MetricPrefix = Literal["pulsar_broker", "pulsar_proxy"]


class Instruments(Collector, Generic[SourceT]):
    """Prometheus collector of a table of metrics, which are read at each scrape.

    Args:
        table: The rows.
        source: Returns the object that the rows read; called once for each scrape.
        labels: The labels of every sample.
        created_seconds: Start of counters and summaries, in seconds since 1970; None without these.
    """

    def __init__(
        self,
        table: Table[SourceT],
        source: Callable[[], SourceT],
        labels: dict[str, str],
        created_seconds: float | None = None,
    ) -> None:
        self._table = table
        self._source = source
        self._labels = labels
        self._created_seconds = created_seconds

    def collect(self) -> Iterator[Metric]:
        """Read the source and yield all metric families."""
        source = self._source()
        for row in self._table:
            yield family(row, source, self._labels, self._created_seconds)


def family(
    row: Instrument[SourceT],
    source: SourceT,
    labels: dict[str, str],
    created_seconds: float | None = None,
    prefix: str = "",
) -> Metric:
    """Return a Prometheus metric family with the current values of an instrument."""
    name = prefix + row.prometheus_name
    kind = Kind.GAUGE if row.kind is Kind.UP_DOWN_COUNTER else row.kind
    found = Metric(name, row.description, kind.value)
    counts = "_total" if kind is Kind.COUNTER else ""
    for own, value, suffix in row.read(source):
        found.add_sample(f"{name}{suffix or counts}", {**labels, **own}, value)
    if created_seconds is not None and kind is not Kind.GAUGE:
        found.add_sample(f"{name}_created", labels, created_seconds)
    return found


class TopicListMetrics(Collector):
    """Prometheus collector of a limiter's topic-list memory, under ``<prefix>_topic_list_``.

    Args:
        wall_clock: Seconds since 1970, for the ``_created`` samples.
    """

    def __init__(
        self,
        prefix: MetricPrefix,
        cluster: str,
        limiter: HasStatistics,
        tally: OutcomeCounts,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._prefix = f"{prefix}_"
        self._labels = {"cluster": cluster}
        self._limiter = limiter
        self._tally = tally
        self._created_seconds = wall_clock()

    def collect(self) -> Iterator[Metric]:
        """Read the limiter and yield all metric families."""
        budgets = budgets_now(self._limiter, self._tally)
        for budget in budgets:
            for row in PULSAR_INSTRUMENTS[budget.limit_type]:
                yield family(row, budget, self._labels, self._created_seconds, self._prefix)
        for own in OWN_INSTRUMENTS:
            yield family(own, budgets, self._labels)
