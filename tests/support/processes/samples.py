"""The lines of an exposition, written and read: no parser between a test and the text."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from server.metrics.exposition import openmetrics_lines, prometheus_lines

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class SampleLine(NamedTuple):
    """A sample and its family's type."""

    name: str
    type: str
    labels: dict[str, str]
    value: float


def prometheus_type(name: str, recorded: str) -> str:
    """Return a sample's type in Prometheus' format from its recorded family's type.

    A real broker writes OpenMetrics families there, including ``_created``.
    """
    return "gauge" if name.endswith("_created") else recorded


def read_samples(text: str) -> list[SampleLine]:
    """Read all samples; any other line except comments fails the test."""
    samples: list[SampleLine] = []
    family_type = ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family_type = line.split()[3]
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            labels = dict(_LABEL.findall(match["labels"] or ""))
            samples.append(SampleLine(match["name"], family_type, labels, float(match["value"])))
    return samples


def exposition(registry: CollectorRegistry) -> bytes:
    """Return all collectors' samples in Prometheus' format."""
    return _joined(chain.from_iterable(map(prometheus_lines, registry.collect())))


def openmetrics(registry: CollectorRegistry) -> bytes:
    """Return all collectors' samples as OpenMetrics."""
    families = map(openmetrics_lines, registry.collect())
    return _joined(chain(chain.from_iterable(families), ("# EOF",)))


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
