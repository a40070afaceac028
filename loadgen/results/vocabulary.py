"""Common names for servers' metrics: the same for Floodgate and Pulsar, for broker and proxy.

A metric is called ``direct.used`` for every server; the table ``samples`` has the scraped name
beside the common name. Metrics without a common name keep the scraped name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from loadgen.results.units import Unit, in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMITER = {
    f"pulsar_{process}_topic_list_{kind}_{metric}": f"{kind}.{figure}"
    for process in ("broker", "proxy")
    for kind in ("heap", "direct")
    for metric, figure in (
        ("memory_used_bytes", "used"),
        ("memory_limit_bytes", "limit"),
        ("queue_size", "waiting"),
        ("queue_max_size", "waiting.limit"),
        ("timeout_total", "timeouts"),
    )
}
PROCESSOR_SECONDS = "floodgate_simulated_processor_seconds_total"
FIGURES = {
    **_LIMITER,
    'floodgate_topic_list_memory_high_water_bytes{type="heap"}': "heap.high",
    'floodgate_topic_list_memory_high_water_bytes{type="direct"}': "direct.high",
    "floodgate_outbound_pending_bytes": "unread",
    "floodgate_outbound_pending_bytes_peak": "unread.high",
    "pulsar_active_connections": "connections",
    "pulsar_proxy_active_connections": "connections",
    'jvm_memory_bytes_used{area="heap"}': "jvm.heap.used",
    'jvm_memory_bytes_max{area="heap"}': "jvm.heap.limit",
    "jvm_memory_direct_bytes_used": "jvm.direct.used",
    "jvm_memory_direct_bytes_max": "jvm.direct.limit",
    "process_resident_memory_bytes": "resident",
    "process_resident_memory_high_water_bytes": "resident.high",
    "process_cpu_seconds_total": "cpu.seconds",
    PROCESSOR_SECONDS: "cpu.seconds",
    "process_open_fds": "descriptors",
    "process_max_fds": "descriptors.limit",
}
"""The common name of each metric of a server; metric names are without the label ``cluster``."""

# Labels that name the server of a sample.
_OWN_LABELS = re.compile(r'\{(?:(?:cluster|broker|metric)="(?:[^"\\]|\\.)*",?)+\}$')


def figure_of(metric: str) -> str | None:
    """Return the common name of a scraped metric; None if it has no common name."""
    return FIGURES.get(metric) or FIGURES.get(_OWN_LABELS.sub("", metric))


MEASURED = {
    "resident": ("Resident memory", Unit.BYTES, ""),
    "heap.used": ("Heap memory of lists", Unit.BYTES, ""),
    "direct.used": ("Direct memory of lists", Unit.BYTES, ""),
    "heap.waiting": ("Requests that wait for heap memory", Unit.COUNT, "requests"),
    "direct.waiting": ("Requests that wait for direct memory", Unit.COUNT, "requests"),
    "unread": ("Answers not yet read", Unit.BYTES, ""),
    "connections": ("Connections", Unit.COUNT, "connections"),
    "cpu.seconds": ("Processor time", Unit.SECONDS, ""),
    "descriptors": ("Open descriptors", Unit.COUNT, "descriptors"),
    "jvm.heap.used": ("Heap of the JVM", Unit.BYTES, ""),
    "jvm.direct.used": ("Direct memory of the JVM", Unit.BYTES, ""),
}
"""Figures that have a chart, with title, unit, and the noun of a count."""


def limit_of(figure: str) -> str:
    """Return the name of the metric that is the limit of another metric."""
    return f"{figure.removesuffix('.used')}.limit"


def unit_of(figure: str) -> tuple[Unit, str]:
    """Return a metric's unit, as its name determines it, and the noun of a count."""
    base = re.sub(r"\.(limit|high)$", "", figure)
    for name in (base, f"{base}.used"):
        if name in MEASURED:
            return MEASURED[name][1:]
    if base.endswith(".timeouts"):
        return Unit.COUNT, "requests"
    known = (unit for unit in (Unit.BYTES, Unit.SECONDS) if f"_{unit}" in figure)
    return next(known, Unit.NUMBER), ""


def of_server(row: Mapping[str, Any]) -> dict[str, str]:
    """Format the numbers in a row of the query ``servers``, in the unit of the row's metric."""
    unit, noun = unit_of(row["figure"])
    columns = {"first": "first", "last": "last", "most": "max", "rise": "rise"}
    told = {head: in_words(unit, row[column], noun) for head, column in columns.items()}
    return {"process": row["process"], "figure": row["figure"], **told}
