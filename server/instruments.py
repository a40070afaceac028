"""The instruments of a server process, common to broker and proxy.

To add an instrument, add a row; ``server/web_port.py`` registers the tables.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from limiter.metrics.instruments import Buckets, counter, gauge, histogram
from server.authentication.counters import EXPIRING_MINUTES
from server.server_info import METRIC, label_of, server_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limiter.flow.totals import FlowTotals
    from limiter.metrics.instruments import Labelled, Table
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

LIMITS: Table[ClientLimits] = (
    counter(
        "floodgate_limit_refusals",
        "Connections and requests refused at a limit of their number, rate, size or time",
        lambda limits: limits.refusals.counts.items(),
        "limit",
    ),
    gauge(
        "floodgate_unfinished_frame_bytes",
        "Bytes kept of unfinished frames, above 64 KiB each",
        lambda limits: limits.unfinished.kept_bytes,
    ),
)

_PENDING = "Bytes queued for clients, not yet taken by the kernel"
FLOW: Table[FlowTotals] = (
    gauge("floodgate_outbound_pending_bytes", _PENDING, lambda flow: flow.outbound.pending_bytes),
    gauge(
        "floodgate_outbound_pending_bytes_peak",
        "Most bytes ever queued for clients at once",
        lambda flow: flow.outbound.peak_bytes,
    ),
    # From PIP-434, never released.
    gauge(
        "pulsar_server_channel_write_buf_memory_used_bytes",
        _PENDING,
        lambda flow: flow.outbound.pending_bytes,
    ),
    gauge(
        "floodgate_outbound_unpaid_bytes",
        "Outbound bytes without a permit of the topic list limiter",
        lambda flow: flow.outbound.unpaid_bytes,
    ),
    gauge(
        "floodgate_parked_frames",
        "Requests read but not handled on paused connections",
        lambda flow: flow.parked_frames,
    ),
    gauge("floodgate_parked_bytes", "Bytes of parked requests", lambda flow: flow.parked_bytes),
    gauge(
        "floodgate_in_flight_response_bytes",
        "Bytes of answers in the making",
        lambda flow: flow.response_bytes,
    ),
    counter(
        "floodgate_oversized_commands",
        "Connections closed for an oversized command",
        lambda flow: flow.oversized_commands,
    ),
    gauge(
        "floodgate_paused_connections",
        "Connections paused now",
        lambda flow: flow.connections.items(),
        "cause",
    ),
    counter(
        "floodgate_pauses",
        "Times a connection was paused",
        lambda flow: flow.pauses.items(),
        "cause",
    ),
    counter(
        "floodgate_paused_seconds",
        "Seconds of pauses, current ones included",
        lambda flow: flow.paused_seconds(),
        "cause",
    ),
    counter(
        "floodgate_closed_slow_peers",
        "Connections closed because the peer did not read",
        lambda flow: flow.closed.items(),
        "reason",
    ),
)

UNANSWERED: Table[UnansweredRequests] = (
    counter(
        "floodgate_unanswered_requests",
        "Listings above a limit, never answered, as shipped",
        lambda unanswered: unanswered.total,
    ),
)

PYTHON: Table[object] = (
    gauge(
        "floodgate_python_blocks",
        "Memory blocks in use by Python",
        lambda _: sys.getallocatedblocks(),
    ),
)
HEAP: Table[HeapSize] = (
    gauge(
        "floodgate_heap_bytes",
        "The C library's heap, by state",
        lambda size: (("in_use", size.in_use_bytes), ("free", size.free_bytes)),
        "state",
    ),
)

EVENT_LOOP: Table[Buckets] = (
    histogram(
        "floodgate_event_loop_lag_seconds",
        "How late the event loop calls back",
        lambda buckets: buckets,
    ),
)

HTTP: Table[HttpLimits] = (
    # The name of a real server's library: JettyStatisticsCollector.
    counter("jetty_requests", "HTTP requests, also refused ones", lambda limits: limits.requests),
)

TLS_HANDSHAKES: Table[TlsHandshakes] = (
    gauge(
        "floodgate_tls_handshakes",
        "Unfinished TLS handshakes of clients",
        lambda handshakes: handshakes.under_way,
    ),
    counter(
        "floodgate_tls_handshakes_ended",
        "Ended TLS handshakes of clients",
        lambda handshakes: (
            ("finished", handshakes.finished_total),
            ("failed", handshakes.failed_total),
            ("timed_out", handshakes.timed_out_total),
        ),
        "outcome",
    ),
)


def _refreshes(contexts: Mapping[str, RefreshedContext]) -> Labelled:
    for name, context in contexts.items():
        yield (name, "used"), context.refreshed_total
        yield (name, "unusable"), context.failed_total


def _expiries(contexts: Mapping[str, RefreshedContext]) -> Labelled:
    for name, context in contexts.items():
        if context.expires_at is not None:
            yield name, context.expires_at


CERTIFICATES: Table[Mapping[str, RefreshedContext]] = (
    counter(
        "floodgate_tls_refreshes",
        "Reloads of changed certificate files",
        _refreshes,
        "of",
        "outcome",
    ),
    gauge(
        "floodgate_tls_certificate_expires_timestamp_seconds",
        "Earliest expiry of the shown certificates, Unix seconds",
        _expiries,
        "of",
    ),
)

# Under upstream's names. Differs: upstream does not count a valid token of CONNECT.
AUTHENTICATION: Table[AuthenticationCounters] = (
    counter(
        "pulsar_authentication_success",
        "Accepted credentials",
        lambda counted: counted.successes.items(),
        "provider_name",
        "auth_method",
    ),
    counter(
        "pulsar_authentication_failures",
        "Refused credentials, by reason",
        lambda counted: counted.failures.items(),
        "provider_name",
        "auth_method",
        "reason",
    ),
    counter(
        "pulsar_expired_token", "Refused expired tokens", lambda counted: counted.expired_tokens
    ),
    histogram(
        "pulsar_expiring_token_minutes",
        "Remaining life of good tokens when shown",
        lambda counted: Buckets(
            map(str, map(float, EXPIRING_MINUTES)), counted.expiring, counted.expiring_minutes
        ),
    ),
)

AUTHORIZATION: Table[RefusedOperations] = (
    counter(
        "floodgate_authorization_refusals",
        "Unauthorized commands and requests, by subject",
        lambda refused: refused.counts.items(),
        "of",
    ),
)

FAULTS: Table[FaultRegistry] = (
    gauge("floodgate_faults", "Faults set", len),
    counter(
        "floodgate_faults_acted",
        "Commands a fault acted on",
        lambda faults: sorted(faults.acted.items()),
        "action",
    ),
)


def info_of(config: ServerConfig) -> Table[ServerConfig]:
    """Return the instrument of the keys that decide a server's responses, as labels."""
    return (
        gauge(
            METRIC,
            "Version, and effective values of the keys that decide answers",
            lambda now: [(tuple(server_info(now).values()), 1)],
            *map(label_of, server_info(config)),
        ),
    )
