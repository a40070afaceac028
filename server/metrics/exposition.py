"""Metrics as text for scrapes: in Prometheus' format 0.0.4 or, on request, OpenMetrics 1.0.

In OpenMetrics a counter's help and type use its family's name, without ``_total``, and ``_created``
samples belong to the family. In Prometheus' own format help and type use the samples' name, or
Prometheus does not find them: a real broker writes the OpenMetrics names, so that its counters have
neither. The names of the samples are the same everywhere.
"""

from __future__ import annotations

import asyncio
import math
import re
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS = OPENMETRICS_TYPE.partition(";")[0]
_CREATED = "_created"
_NEVER = re.compile(r"(?:^|;)\s*q=0(?:\.0*)?\s*(?:;|$)")


def wants_openmetrics(accept: str) -> bool:
    """Return True if the header ``Accept`` of a request accepts OpenMetrics."""
    for part in accept.lower().split(","):
        media_type, _, parameters = part.partition(";")
        if media_type.strip() == _OPENMETRICS and not _NEVER.search(parameters):
            return True
    return False


class TextFamily(NamedTuple):
    """A metric family (a metric with all its samples), whose samples are lines of text already.

    A string for each sample, since strings cost the garbage collector nothing, even for ten
    thousand topics.

    Attributes:
        name: The family's name; a counter's is without ``_total``.
        documentation: The help text.
        type: The type of the metric, such as counter or gauge.
        lines: The samples, a line each.
    """

    name: str
    documentation: str
    type: str
    lines: list[str]


def openmetrics_lines(family: Metric | TextFamily) -> Iterator[str]:
    """Yield the lines of a metric family in OpenMetrics, without the final EOF line."""
    help_text = _escaped(family.documentation)
    return _lines(family.name, family.type, help_text, _sample_lines(family))


def prometheus_lines(family: Metric | TextFamily) -> Iterator[str]:
    """Yield the lines of a metric family in Prometheus' text format."""
    help_text, lines = _escaped_help(family.documentation), _sample_lines(family)
    if family.type == "gauge":
        yield from _lines(family.name, family.type, help_text, lines)
        return
    name = f"{family.name}_total" if family.type == "counter" else family.name
    created, others = list[str](), list[str]()
    starts = tuple(f"{family.name}{_CREATED}{end}" for end in "{ ")
    for line in lines:
        (created if line.startswith(starts) else others).append(line)
    yield from _lines(name, family.type, help_text, others)
    if created:
        since = f"Since when {name} counts, in seconds since 1970"
        yield from _lines(f"{family.name}{_CREATED}", "gauge", since, created)


def _lines(name: str, kind: str, help_text: str, samples: Iterable[str]) -> Iterator[str]:
    if help_text:
        yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    yield from samples


def _sample_lines(family: Metric | TextFamily) -> Iterable[str]:
    if isinstance(family, TextFamily):
        return family.lines
    return (sample_line(one.name, label_text(one.labels), one.value) for one in family.samples)


def label_text(labels: Mapping[str, str]) -> str:
    """Return a sample's labels in braces, as they follow its name; empty without labels."""
    text = ",".join([f'{name}="{_escaped(value)}"' for name, value in labels.items()])
    return f"{{{text}}}" if text else ""


def sample_line(name: str, labels: str, value: float) -> str:
    """Return the text line of a sample, given its labels as text."""
    return f"{name}{labels} {_number(float(value))}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


Gather: TypeAlias = "Callable[[], Generator[None, None, Iterable[Metric | TextFamily]]]"
"""Collects families in steps."""
Families: TypeAlias = "Collection[TextFamily | Metric]"
_LINES_A_STEP = 500


class Scrapes:
    """Collects all metrics of a server and writes them as text.

    Bound: a single scrape is written at a time; further scrapes wait. Its length is bounded by
    the collectors.

    Args:
        registry: Collectors that return immediately.
        gather: Collects families in steps; None without such collectors.
    """

    def __init__(self, registry: CollectorRegistry, gather: Gather | None = None) -> None:
        self._registry = registry
        self._gather = gather
        self._steps = Steps()
        self._one_at_a_time = asyncio.Lock()

    async def text(self, *, as_openmetrics: bool) -> list[bytes]:
        """Collect all metrics, and return them in the format of OpenMetrics or Prometheus.

        Returns:
            Blocks of lines, since copying a single large text would block the event loop.
        """
        async with self._one_at_a_time:
            families: Iterable[Metric | TextFamily] = ()
            if self._gather is not None:
                families = await self._steps.take(self._gather())
            found = chain(self._registry.collect(), families)
            return await self._steps.take(_written(found, as_openmetrics=as_openmetrics))


def _written(
    families: Iterable[Metric | TextFamily], *, as_openmetrics: bool
) -> Generator[None, None, list[bytes]]:
    lines_of = openmetrics_lines if as_openmetrics else prometheus_lines
    blocks = []
    for family in families:
        lines = iter(lines_of(family))
        while block := list(islice(lines, _LINES_A_STEP)):
            blocks.append("\n".join((*block, "")).encode())
            yield
        if isinstance(family, TextFamily):
            family.lines.clear()  # Freeing all of them at the end would block the event loop.
    if as_openmetrics:
        blocks.append(b"# EOF\n")
    return blocks


class SampleTable:
    """Collects samples of metrics as text lines, grouped into metric families.

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
        """All metric families, in the order in which their first samples were added."""
        return self._families.values()

    def gauge(self, name: str, labels: dict[str, str], value: float) -> None:
        """Add a sample to a gauge."""
        self._add(self._family(name, "gauge"), name, labels, value)

    def counter(
        self, name: str, labels: dict[str, str], value: float, created: float | None = None
    ) -> None:
        """Add a sample to a counter: ``<name>_total``, and the time of creation if known."""
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
        """Add the samples of a summary: its quantiles, count and sum."""
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
