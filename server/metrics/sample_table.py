"""Samples collected individually, and grouped into families on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.metrics.exposition import TextFamily, label_text, sample_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from prometheus_client.core import Metric

    Families: TypeAlias = Collection[TextFamily | Metric]


class SampleTable:
    """Families of metrics, each created by its first sample.

    Labels are converted to text once for successive samples with the same label object, such as a
    topic's. So label objects must not be changed after use.

    Args:
        documentation: Returns the help text of a family.
    """

    def __init__(self, documentation: Callable[[str], str]) -> None:
        self._documentation = documentation
        self._families: dict[str, TextFamily] = {}
        self._labels: Mapping[str, str] = {}
        self._label_text = ""

    @property
    def families(self) -> Collection[TextFamily]:
        """All families, in the order of their first samples."""
        return self._families.values()

    def gauge(self, name: str, labels: dict[str, str], value: float) -> None:
        """Add a sample of a gauge."""
        self._add(self._family(name, "gauge"), name, labels, value)

    def counter(
        self, name: str, labels: dict[str, str], value: float, created: float | None = None
    ) -> None:
        """Add the sample ``<name>_total`` of a counter, and its start, if given."""
        family = self._family(name, "counter")
        self._add(family, f"{name}_total", labels, value)
        if created is not None:
            self._add(family, f"{name}_created", labels, created)

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
            self._add(family, name, {**labels, "quantile": quantile}, value)
        self._add(family, f"{name}_count", labels, count)
        self._add(family, f"{name}_sum", labels, total)

    def _add(self, family: TextFamily, name: str, labels: dict[str, str], value: float) -> None:
        if labels is not self._labels:
            self._labels, self._label_text = labels, label_text(labels)
        family.lines.append(sample_line(name, self._label_text, value))

    def _family(self, name: str, kind: str) -> TextFamily:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = TextFamily(name, self._documentation(name), kind, [])
        return family
