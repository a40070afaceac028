"""Metrics of the proxy: connections, requests, pending lookups, forwarded HTTP requests.

Names are upstream's ProxyService's; a counter scrapes as ``<name>_total``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limiter.metrics.instruments import table

if TYPE_CHECKING:
    from collections.abc import Sized

    from limiter.flow.lookup_semaphore import LookupSemaphore
    from limiter.metrics.instruments import Table
    from proxy.forwarding.forwarder import Forwarder
    from proxy.listing.live_answers import LiveAnswers
    from server.connection.counters import ConnectionCounters

CONNECTIONS: Table[ConnectionCounters] = table(
    "pulsar_proxy_", ("active_connections", "Open client connections", "active")
)


@dataclass(slots=True)
class ProxyCounters:
    """Counts of a proxy since its start; each is a metric in the table ``REQUESTS``."""

    new_connections: int = 0
    rejected_connections: int = 0
    binary_ops: int = 0
    lookup_requests: int = 0
    rejected_lookup_requests: int = 0
    partitions_metadata_requests: int = 0
    rejected_partitions_metadata_requests: int = 0
    get_topics_of_namespace_requests: int = 0
    rejected_get_topics_of_namespace_requests: int = 0
    get_schema_requests: int = 0


REQUESTS: Table[ProxyCounters] = table(
    "pulsar_proxy_",
    *(
        (f"{name}_total", text, name)
        for name, text in (
            ("new_connections", "Client connections accepted"),
            ("rejected_connections", "Client connections refused: too many open"),
            ("binary_ops", "Commands handled"),
            ("lookup_requests", "Lookups forwarded"),
            ("rejected_lookup_requests", "Lookups refused: too many pending"),
            ("partitions_metadata_requests", "Partition metadata requests forwarded"),
            (
                "rejected_partitions_metadata_requests",
                "Partition metadata requests refused: too many pending",
            ),
            ("get_topics_of_namespace_requests", "Topic listings forwarded"),
            (
                "rejected_get_topics_of_namespace_requests",
                "Topic listings refused: too many pending",
            ),
            ("get_schema_requests", "Schema requests"),
        )
    ),
)
LOOKUPS: Table[LookupSemaphore] = table(
    "floodgate_proxy_lookup_",
    ("pending_requests", "Lookups, metadata requests and listings in progress", "pending_requests"),
)
LIVE_ANSWERS: Table[LiveAnswers] = table(
    "floodgate_proxy_",
    (
        "reused_answers_total",
        "Topic lists sent from a buffer being sent to other clients",
        "reused_total",
    ),
)
ROLE_POOLS: Table[Sized] = table(
    "floodgate_proxy_", ("role_pools", "Roles with shared connections to brokers", len)
)
FORWARDING: Table[Forwarder] = table(
    "floodgate_proxy_http_",
    ("requests", "HTTP requests being forwarded", "counters.active"),
    ("replay_bytes", "Bytes of request bodies kept for redirects", "replay.held_bytes"),
    ("answered_total", "HTTP requests answered by a broker", "counters.answered"),
    ("refused_total", "HTTP requests refused: too many forwarded", "counters.refused"),
    ("failed_total", "HTTP requests without a complete answer", "counters.failed"),
    ("redirects_total", "Followed redirects of brokers", "counters.redirects"),
)
