"""Metric families as text: Prometheus' format 0.0.4, or OpenMetrics 1.0 when asked for.

In OpenMetrics a counter's help and type stand under its family's name, without ``_total``, and
``_created`` samples belong to the family. In Prometheus' own format each stands under the name of
its samples, or Prometheus does not find it: there a real broker writes the OpenMetrics names, so
that its counters have neither. The names of the samples are the same everywhere.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS = OPENMETRICS_TYPE.partition(";")[0]
_CREATED = "_created"
_NEVER = re.compile(r"(?:^|;)\s*q=0(?:\.0*)?\s*(?:;|$)")


def wants_openmetrics(accept: str) -> bool:
    """Tell whether a header ``Accept`` names OpenMetrics, and does not say ``q=0`` of it."""
    for part in accept.lower().split(","):
        media_type, _, parameters = part.partition(";")
        if media_type.strip() == _OPENMETRICS and not _NEVER.search(parameters):
            return True
    return False


def openmetrics_lines(family: Metric) -> Iterator[str]:
    """Yield the lines of a family in OpenMetrics, but for the last line of all."""
    help_text = _escaped(family.documentation)
    return _lines(family.name, family.type, help_text, family.samples)


def prometheus_lines(family: Metric) -> Iterator[str]:
    """Yield the lines of a family in Prometheus' format."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    created = [one for one in family.samples if one.name == f"{family.name}{_CREATED}"]
    others = [one for one in family.samples if one not in created]
    yield from _lines(name, family.type, _escaped_help(family.documentation), others)
    if created:
        since = f"Since when {name} counts, in seconds since 1970"
        yield from _lines(f"{family.name}{_CREATED}", "gauge", since, created)


def _lines(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    if help_text:
        yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    yield from map(_sample_line, samples)


def _sample_line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{f'{{{labels}}}' if labels else ''} {_number(float(sample.value))}"


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
