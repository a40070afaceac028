"""Writes metric families in Prometheus' text format 0.0.4, as a real broker does.

prometheus_client's own writer retypes every ``_created`` sample as a gauge of its own and
sorts labels; a real broker keeps all samples of a family under its one ``# TYPE`` line.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(registry: CollectorRegistry) -> bytes:
    """Ask every collector and write what it says; labels keep the collector's order."""
    lines = (line for family in registry.collect() for line in _family_lines(family))
    return "".join(f"{line}\n" for line in lines).encode()


def _family_lines(family: Metric) -> Iterator[str]:
    if family.documentation:
        yield f"# HELP {family.name} {_escaped_help(family.documentation)}"
    yield f"# TYPE {family.name} {family.type}"
    for sample in family.samples:
        yield _sample_line(sample)


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
