"""The proxy's instruments: connections, requests, pending lookups, forwarded HTTP requests.

Names are upstream's ProxyService's; a counter scrapes as ``<name>_total``.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from limiter.metrics.instruments import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Sized

    from limiter.flow.lookup_semaphore import LookupSemaphore
    from limiter.metrics.instruments import Table
    from proxy.forwarding.forwarder import Forwarder
    from proxy.listing.live_answers import LiveAnswers
    from server.connection.counters import ConnectionCounters

CONNECTIONS: Table[ConnectionCounters] = (
    gauge("pulsar_proxy_active_connections", "Open client connections", lambda it: it.active),
)


@dataclass(slots=True)
class ProxyCounters:
    """A proxy's counters since its start; each is a row of ``REQUESTS``."""

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


REQUESTS: Table[ProxyCounters] = tuple(
    counter(f"pulsar_proxy_{name}", text, attrgetter(name))
    for name, text in (
        ("new_connections", "Client connections accepted"),
        ("rejected_connections", "Client connections refused: too many open"),
        ("binary_ops", "Commands handled"),
        ("lookup_requests", "Lookups forwarded"),
        ("rejected_lookup_requests", "Lookups refused: too many pending"),
        ("partitions_metadata_requests", "Partition metadata requests forwarded"),
        ("rejected_partitions_metadata_requests", "Partition requests refused: too many"),
        ("get_topics_of_namespace_requests", "Topic listings forwarded"),
        ("rejected_get_topics_of_namespace_requests", "Topic listings refused: too many"),
        ("get_schema_requests", "Schemas asked for"),
    )
)
LOOKUPS: Table[LookupSemaphore] = (
    gauge(
        "floodgate_proxy_lookup_pending_requests",
        "Lookups, metadata requests and listings in progress",
        lambda lookups: lookups.pending_requests,
    ),
)
LIVE_ANSWERS: Table[LiveAnswers] = (
    counter(
        "floodgate_proxy_reused_answers",
        "Topic lists sent from bytes already on their way to clients",
        lambda live: live.reused_total,
    ),
)
ROLE_POOLS: Table[Sized] = (
    gauge("floodgate_proxy_role_pools", "Roles with shared connections to brokers", len),
)
FORWARDING: Table[Forwarder] = (
    gauge(
        "floodgate_proxy_http_requests",
        "HTTP requests being forwarded",
        lambda it: it.counters.active,
    ),
    gauge(
        "floodgate_proxy_http_replay_bytes",
        "Bytes of request bodies kept for redirects",
        lambda it: it.replay.held_bytes,
    ),
    counter(
        "floodgate_proxy_http_answered",
        "HTTP requests answered by a broker",
        lambda it: it.counters.answered,
    ),
    counter(
        "floodgate_proxy_http_refused",
        "HTTP requests refused: too many forwarded",
        lambda it: it.counters.refused,
    ),
    counter(
        "floodgate_proxy_http_failed",
        "HTTP requests without a complete answer",
        lambda it: it.counters.failed,
    ),
    counter(
        "floodgate_proxy_http_redirects",
        "Followed redirects of brokers",
        lambda it: it.counters.redirects,
    ),
)
