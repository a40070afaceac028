"""One vocabulary for what servers tell: Floodgate's names and a real Pulsar's, broker and proxy.

A figure is called ``direct.used`` whichever server it is of; the table ``samples`` has the name
under which it was scraped beside it. What is in no row here keeps its own name.
"""

from __future__ import annotations

import re

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
FIGURES = {
    **_LIMITER,
    'floodgate_topic_list_memory_high_water_bytes{type="heap"}': "heap.high",
    'floodgate_topic_list_memory_high_water_bytes{type="direct"}': "direct.high",
    "floodgate_outbound_pending_bytes": "unread",
    "floodgate_outbound_pending_bytes_peak": "unread.high",
    "pulsar_active_connections": "connections",
    "pulsar_proxy_active_connections": "connections",
    'jvm_memory_bytes_used{area="heap"}': "jvm.heap.used",
    "jvm_memory_direct_bytes_used": "jvm.direct.used",
    "process_resident_memory_bytes": "resident",
    "process_resident_memory_high_water_bytes": "resident.high",
    "process_cpu_seconds_total": "cpu.seconds",
    "process_open_fds": "descriptors",
    "process_max_fds": "descriptors.limit",
}
"""Names of samples, without the label ``cluster``, and what the figure is called."""

# Labels that say whose sample it is, and nothing more.
_OWN_LABELS = re.compile(r'\{(?:(?:cluster|broker|metric)="(?:[^"\\]|\\.)*",?)+\}$')


def figure_of(metric: str) -> str | None:
    """Return what a scraped sample is called here; None if it has no name but its own."""
    return FIGURES.get(metric) or FIGURES.get(_OWN_LABELS.sub("", metric))
