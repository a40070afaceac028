"""Samples collected one by one, whose families are put together on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    Families: TypeAlias = Collection[Metric]


class SampleTable:
    """Families of metrics, each begun by its first sample.

    Labels are kept and not copied: those of a topic are shared by all its samples.

    Args:
        documentation: Returns what a family's name stands for.
    """

    def __init__(self, documentation: Callable[[str], str]) -> None:
        self._documentation = documentation
        self._families: dict[str, Metric] = {}

    @property
    def families(self) -> Families:
        """All families, in the order of their first samples."""
        return self._families.values()

    def gauge(self, name: str, labels: dict[str, str], value: float) -> None:
        """Add a sample of a gauge."""
        self._family(name, "gauge").add_sample(name, labels, value)

    def counter(
        self, name: str, labels: dict[str, str], value: float, created: float | None = None
    ) -> None:
        """Add the sample ``<name>_total`` of a counter, and since when it counts, if given."""
        family = self._family(name, "counter")
        family.add_sample(f"{name}_total", labels, value)
        if created is not None:
            family.add_sample(f"{name}_created", labels, created)

    def summary(
        self,
        name: str,
        labels: dict[str, str],
        quantiles: Mapping[str, float],
        count: int,
        total: float,
    ) -> None:
        """Add the samples of a summary."""
        family = self._family(name, "summary")
        for quantile, value in quantiles.items():
            family.add_sample(name, {**labels, "quantile": quantile}, value)
        family.add_sample(f"{name}_count", labels, count)
        family.add_sample(f"{name}_sum", labels, total)

    def _family(self, name: str, kind: str) -> Metric:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = Metric(name, self._documentation(name), kind)
        return family
