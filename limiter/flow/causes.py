"""Causes to pause a connection, and reasons to close one."""

from __future__ import annotations

from enum import Enum


class CloseReason(Enum):
    """A reason to close a peer that did not take what it was sent."""

    CONTENTION = "contention"
    """It pinned memory that another connection waited for (floodgateSlowPeerGraceMs)."""
    UNWRITABLE = "unwritable"
    """It took nothing for too long, though nobody waited (floodgateMaxUnwritableSeconds)."""
    DRAIN_RATE = "drain_rate"
    """It took less than floodgateMinDrainRateBytesPerSecond."""
    KEEP_ALIVE = "keep_alive"
    """It took and said nothing between two keep-alive ticks."""

    __hash__ = object.__hash__


class RateLimitOperation(Enum):
    """An operation that OpenTelemetry counts.

    Source: upstream BrokerService's ConnectionRateLimitOperationName.
    """

    PAUSED = "paused"
    """A connection that was read is read no more, whatever the cause."""
    RESUMED = "resumed"
    THROTTLED = "throttled"
    """Its pending publishes became a cause."""
    UNTHROTTLED = "unthrottled"

    __hash__ = object.__hash__


class PauseCause(Enum):
    """A cause to pause reading (upstream: ServerCnxThrottleTracker.ThrottleType)."""

    OUTBOUND_BUFFER_FULL = "outbound_buffer_full"
    """The peer does not read its answers."""
    COOLDOWN = "cooldown"
    """The peer was paused a moment ago and asks too much at once again."""
    IN_FLIGHT_RESPONSE_BYTES = "in_flight_response_bytes"
    """Answers to the peer are being made, as many bytes as one connection may have."""
    PENDING_PUBLISHES = "pending_publishes"
    """Messages of the peer wait to be stored."""
    PEER_LEG_FULL = "peer_leg_full"
    """The other side of the pipe does not take more."""
    PROCESS_OUTBOUND_FULL = "process_outbound_full"
    """All connections together have too much pending, and this one has some of it."""
    CONNECTING_TO_BROKER = "connecting_to_broker"
    """The pipe is not open yet."""
    CHECKING_CREDENTIALS = "checking_credentials"
    """The password in CONNECT is being hashed."""
    FAULT = "fault"
    """A fault that was set on command holds it up (server.faults)."""

    # Members are one of a kind; Enum's own hash is a Python function.
    __hash__ = object.__hash__
