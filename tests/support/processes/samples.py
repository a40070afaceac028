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
    """One sample and the type of the family it stands under."""

    name: str
    type: str
    labels: dict[str, str]
    value: float


def prometheus_type(name: str, recorded: str) -> str:
    """Return the type of a sample in Prometheus' format, of that of its recorded family.

    A real broker writes OpenMetrics' families there, of which ``_created`` is a part.
    """
    return "gauge" if name.endswith("_created") else recorded


def read_samples(text: str) -> list[SampleLine]:
    """Read all samples; a line that is neither comment nor sample fails the test."""
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
    """Return what all collectors say, in Prometheus' format."""
    return _joined(chain.from_iterable(map(prometheus_lines, registry.collect())))


def openmetrics(registry: CollectorRegistry) -> bytes:
    """Return what all collectors say, as OpenMetrics."""
    families = map(openmetrics_lines, registry.collect())
    return _joined(chain(chain.from_iterable(families), ("# EOF",)))


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
