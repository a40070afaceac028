"""Reasons for pausing the reading of a connection, and for closing a connection."""

from __future__ import annotations

from enum import Enum


class CloseReason(Enum):
    """Reasons for closing the connection of a peer that does not read its responses."""

    CONTENTION = "contention"
    """The peer held memory that another connection waited for (floodgateSlowPeerGraceMs)."""
    UNWRITABLE = "unwritable"
    """The peer read nothing for too long, without contention (floodgateMaxUnwritableSeconds)."""
    DRAIN_RATE = "drain_rate"
    """The peer read less than floodgateMinDrainRateBytesPerSecond."""
    KEEP_ALIVE = "keep_alive"
    """The peer neither read nor sent between two keep-alive ticks."""

    __hash__ = object.__hash__


class RateLimitOperation(Enum):
    """Changes in the reading of a connection, counted for an OpenTelemetry metric.

    Source: upstream BrokerService's ConnectionRateLimitOperationName.
    """

    PAUSED = "paused"
    """A connection's reading was paused, for any cause."""
    RESUMED = "resumed"
    THROTTLED = "throttled"
    """Pending publishes paused the connection."""
    UNTHROTTLED = "unthrottled"

    __hash__ = object.__hash__


class PauseCause(Enum):
    """Reasons for pausing the reading of a connection.

    Upstream: ServerCnxThrottleTracker.ThrottleType.
    """

    OUTBOUND_BUFFER_FULL = "outbound_buffer_full"
    """The peer does not read its responses."""
    COOLDOWN = "cooldown"
    """The peer was paused a moment ago and again sends too many requests."""
    IN_FLIGHT_RESPONSE_BYTES = "in_flight_response_bytes"
    """The connection's unfinished responses have reached their limit of bytes."""
    PENDING_PUBLISHES = "pending_publishes"
    """The peer's messages wait to be stored."""
    PEER_LEG_FULL = "peer_leg_full"
    """The other side of the pipe accepts no more bytes."""
    PROCESS_OUTBOUND_FULL = "process_outbound_full"
    """The process's outbound bytes exceed their bound, and some are this connection's."""
    CONNECTING_TO_BROKER = "connecting_to_broker"
    """The pipe is not open yet."""
    CHECKING_CREDENTIALS = "checking_credentials"
    """The password in CONNECT is being hashed."""
    FAULT = "fault"
    """A fault set by an operator holds the connection (server.faults)."""

    # Members compare by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__
