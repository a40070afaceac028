"""The table of instruments as Prometheus families: a real broker's 26 samples, and our own.

The limiter does not know this module: a scrape reads the limiter's ``statistics()`` and the tally
of its observer. prometheus_client's Summary has no quantiles, so the families are built here,
sample by sample.

Source: upstream TopicListMemoryLimiter; names, types and labels as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from limiter.metrics.instruments import (
    OWN_INSTRUMENTS,
    PULSAR_INSTRUMENTS,
    InstrumentKind,
    budgets_now,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limiter.metrics.instruments import BudgetSnapshot, HasStatistics, Instrument
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.wait_times import WaitTimes

QUANTILES = (0.5, 0.95, 0.99, 1.0)

MetricPrefix = Literal["pulsar_broker", "pulsar_proxy"]


def wait_summary(
    name: str,
    documentation: str,
    labels: dict[str, str],
    waits: WaitTimes,
    quantiles: Sequence[float] = QUANTILES,
    created_seconds: float | None = None,
) -> Metric:
    """Return waits as a summary in milliseconds, with the start of counting, if given."""
    family = Metric(name, documentation, "summary")
    for quantile, millis in zip(quantiles, waits.quantiles(quantiles), strict=True):
        family.add_sample(name, {**labels, "quantile": str(quantile)}, millis)
    family.add_sample(f"{name}_count", labels, waits.count)
    family.add_sample(f"{name}_sum", labels, waits.sum_millis)
    if created_seconds is not None:
        family.add_sample(f"{name}_created", labels, created_seconds)
    return family


class TopicListMetrics(Collector):
    """A limiter's topic-list memory, exported under ``<prefix>_topic_list_``.

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
        self._prefix = prefix
        self._cluster = cluster
        self._limiter = limiter
        self._tally = tally
        self._created_seconds = wall_clock()

    def collect(self) -> Iterator[Metric]:
        """Read the limiter and yield all families."""
        budgets = budgets_now(self._limiter, self._tally)
        for budget in budgets:
            for instrument in PULSAR_INSTRUMENTS:
                yield self._pulsar_family(instrument, budget)
        for instrument in OWN_INSTRUMENTS:
            yield self._own_family(instrument, budgets)

    def _pulsar_family(self, instrument: Instrument, budget: BudgetSnapshot) -> Metric:
        _, name, documentation = instrument.of(budget.limit_type)
        name = f"{self._prefix}_{name}"
        if instrument.kind is InstrumentKind.HISTOGRAM:
            return self._wait_summary(name, documentation, budget)
        value = instrument.read(budget)[""]
        labels = ["cluster"]
        if instrument.kind is InstrumentKind.COUNTER:
            counter = CounterMetricFamily(name, documentation, labels=labels)
            counter.add_metric([self._cluster], value, created=self._created_seconds)
            return counter
        gauge = GaugeMetricFamily(name, documentation, labels=labels)
        gauge.add_metric([self._cluster], value)
        return gauge

    def _wait_summary(self, name: str, documentation: str, budget: BudgetSnapshot) -> Metric:
        labels, waits = {"cluster": self._cluster}, budget.tally.waits
        return wait_summary(name, documentation, labels, waits, QUANTILES, self._created_seconds)

    def _own_family(self, instrument: Instrument, budgets: tuple[BudgetSnapshot, ...]) -> Metric:
        counts = instrument.kind is InstrumentKind.COUNTER
        name = instrument.prometheus_name
        family = Metric(
            name.removesuffix("_total"), instrument.description, "counter" if counts else "gauge"
        )
        for budget in budgets:
            labels = {"cluster": self._cluster, "type": budget.limit_type.value}
            for text, value in instrument.read(budget).items():
                by_text = {instrument.label: text} if text else {}
                family.add_sample(name, {**labels, **by_text}, value)
        return family
