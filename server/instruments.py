"""Tables of the metrics that broker and proxy share.

To add an instrument, add a row; ``server/web_port.py`` registers the tables.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from limiter.metrics.instruments import Buckets, histogram, table
from server.authentication.counters import EXPIRING_MINUTES
from server.server_info import METRIC, label_of, server_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limiter.flow.totals import FlowTotals
    from limiter.metrics.instruments import Pairs, Table
    from server.authentication.counters import AuthenticationCounters
    from server.authentication.refused import RefusedOperations
    from server.configuration.common import ServerConfig
    from server.connection.unanswered_requests import UnansweredRequests
    from server.faults.registry import FaultRegistry
    from server.limits.clients import ClientLimits
    from server.limits.http import HttpLimits
    from server.tasks.freed_memory import HeapSize
    from server.tls.handshakes import TlsHandshakes
    from server.tls.refreshed import RefreshedContext

LIMITS: Table[ClientLimits] = table(
    "floodgate_",
    (
        "limit_refusals_total{limit}",
        "Connections and requests refused at a limit of their number, rate, size or time",
        "refusals.counts",
    ),
    (
        "unfinished_frame_bytes",
        "Received bytes of incomplete frames that exceed 64 KiB",
        "unfinished.kept_bytes",
    ),
)

_PENDING = "Bytes queued for clients, not yet taken by the kernel"
FLOW: Table[FlowTotals] = table(
    "",
    ("floodgate_outbound_pending_bytes", _PENDING, "outbound.pending_bytes"),
    (
        "floodgate_outbound_pending_bytes_peak",
        "Most bytes ever queued for clients at once",
        "outbound.peak_bytes",
    ),
    # From PIP-434, never released.
    ("pulsar_server_channel_write_buf_memory_used_bytes", _PENDING, "outbound.pending_bytes"),
    (
        "floodgate_outbound_unpaid_bytes",
        "Outbound bytes without a permit of the topic list limiter",
        "outbound.unpaid_bytes",
    ),
    (
        "floodgate_parked_frames",
        "Requests of paused connections, read and not yet handled",
        "parked_frames",
    ),
    (
        "floodgate_parked_bytes",
        "Bytes of the requests counted by floodgate_parked_frames",
        "parked_bytes",
    ),
    ("floodgate_in_flight_response_bytes", "Bytes of answers in progress", "response_bytes"),
    (
        "floodgate_oversized_commands_total",
        "Connections closed for an oversized command",
        "oversized_commands",
    ),
    ("floodgate_paused_connections{cause}", "Connections not read now, by cause", "connections"),
    ("floodgate_pauses_total{cause}", "Pauses in reading a connection, by cause", "pauses"),
    (
        "floodgate_paused_seconds_total{cause}",
        "Seconds of pauses in reading connections, current pauses included",
        lambda flow: flow.paused_seconds(),
    ),
    (
        "floodgate_closed_slow_peers_total{reason}",
        "Connections closed because the peer did not read",
        "closed",
    ),
)

UNANSWERED: Table[UnansweredRequests] = table(
    "floodgate_",
    (
        "unanswered_requests_total",
        "Requests left unanswered, as recorded of a real server",
        "total",
    ),
)

PYTHON: Table[object] = table(
    "floodgate_",
    ("python_blocks", "Memory blocks allocated by Python", lambda _: sys.getallocatedblocks()),
)
HEAP: Table[HeapSize] = table(
    "floodgate_",
    (
        "heap_bytes{state}",
        "Bytes of the C library's heap, by state",
        lambda size: {"in_use": size.in_use_bytes, "free": size.free_bytes},
    ),
)

EVENT_LOOP: Table[Buckets] = (
    histogram(
        "floodgate_event_loop_lag_seconds", "Delay of the event loop's callbacks", lambda it: it
    ),
)

# The name of a real server's library: JettyStatisticsCollector.
HTTP: Table[HttpLimits] = table(
    "jetty_", ("requests_total", "HTTP requests, including refused ones", "requests")
)

TLS_HANDSHAKES: Table[TlsHandshakes] = table(
    "floodgate_tls_handshakes",
    ("", "Unfinished TLS handshakes of clients", "under_way"),
    (
        "_ended_total{outcome}",
        "Ended TLS handshakes of clients, by outcome",
        lambda of: {
            "finished": of.finished_total,
            "failed": of.failed_total,
            "timed_out": of.timed_out_total,
        },
    ),
)


def _refreshes(contexts: Mapping[str, RefreshedContext]) -> Pairs:
    for name, context in contexts.items():
        yield (name, "used"), context.refreshed_total
        yield (name, "unusable"), context.failed_total


CERTIFICATES: Table[Mapping[str, RefreshedContext]] = table(
    "floodgate_tls_",
    ("refreshes_total{of,outcome}", "Reloads of changed certificates, by outcome", _refreshes),
    (
        "certificate_expires_timestamp_seconds{of}",
        "Earliest expiry of the server's certificates, seconds since 1970",
        lambda contexts: [
            (name, one.expires_at) for name, one in contexts.items() if one.expires_at is not None
        ],
    ),
)

# Under upstream's names. Differs: upstream does not count a valid token of CONNECT.
AUTHENTICATION: Table[AuthenticationCounters] = (
    *table(
        "pulsar_",
        (
            "authentication_success_total{provider_name,auth_method}",
            "Accepted credentials",
            "successes",
        ),
        (
            "authentication_failures_total{provider_name,auth_method,reason}",
            "Refused credentials, by reason",
            "failures",
        ),
        ("expired_token_total", "Refused expired tokens", "expired_tokens"),
    ),
    histogram(
        "pulsar_expiring_token_minutes",
        "Minutes until expiry of tokens when accepted",
        lambda counted: Buckets(
            map(str, map(float, EXPIRING_MINUTES)), counted.expiring, counted.expiring_minutes
        ),
    ),
)

AUTHORIZATION: Table[RefusedOperations] = table(
    "floodgate_authorization_",
    ("refusals_total{of}", "Unauthorized commands and REST requests, by subject", "counts"),
)

FAULTS: Table[FaultRegistry] = table(
    "floodgate_faults",
    ("", "Faults that are set", len),
    ("_waits", "REST requests that wait until a fault acts", "waits"),
    (
        "_acted_total{action}",
        "Commands on which a fault acted, by action",
        lambda faults: sorted(faults.acted.items()),
    ),
)


def info_of(config: ServerConfig) -> Table[ServerConfig]:
    """Return the metric whose labels tell the version and the most important settings."""
    labels = ",".join(map(label_of, server_info(config)))
    return table(
        METRIC,
        (
            f"{{{labels}}}",
            "Version, and effective values of the keys that decide answers",
            lambda now: [(tuple(server_info(now).values()), 1)],
        ),
    )
