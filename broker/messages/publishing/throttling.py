"""Publish limits, enforced by not reading from connections for a while.

No error is sent: the client waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.policies.effective import Rate
from broker.policies.rate_limiter import RateLimiter
from limiter.clock import Timer
from limiter.flow.causes import PauseCause

if TYPE_CHECKING:
    from broker.configuration.publishing_keys import PublishingConfig
    from limiter.clock import Clock
    from limiter.flow.read_gate import ReadGate

_SHORTEST_WAIT_SECONDS = 0.001


class PublishBuffer:
    """The bytes of all connections' messages that are not stored yet.

    Their limit is maxMessagePublishBufferSizeInMB.

    While the buffer is full, connections that publish or open a producer are paused until the
    buffer is half empty.

    Args:
        max_bytes: The limit in bytes; 0 or less is no limit.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0
        self._throttled: set[ConnectionPublishes] = set()

    def add(self, connection: ConnectionPublishes, size_bytes: int) -> None:
        """Count a connection's message; pause reading from the connection if the buffer is full."""
        self.size_bytes += size_bytes
        self.check(connection)

    def check(self, connection: ConnectionPublishes) -> None:
        """Pause reading from a connection if the buffer is full."""
        if 0 < self.max_bytes < self.size_bytes:
            self._throttled.add(connection)
            connection.throttle(self)

    def remove(self, size_bytes: int) -> None:
        """Stop counting a message; once the buffer is half empty, resume paused connections."""
        self.size_bytes -= size_bytes
        if self._throttled and self.size_bytes <= self.max_bytes // 2:
            throttled, self._throttled = self._throttled, set()
            for connection in throttled:
                connection.lift(self)

    def forget(self, connection: ConnectionPublishes) -> None:
        """Forget a lost connection, which is never resumed."""
        self._throttled.discard(connection)


class PublishRate:
    """A limit on the publish rate of one topic, or of the whole broker.

    Messages above the rate are stored, and then the connection pauses until the rate allows further
    messages.

    Attributes:
        limits: True if the rate is limited.
        limited_times: Messages that exceeded the rate (publishRateLimitedTimes).

    Source: upstream PublishRateLimiterImpl.
    """

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._limiter = RateLimiter(rate, clock, _SHORTEST_WAIT_SECONDS)
        self.limits = self._limiter.limited
        self.limited_times = 0
        self._throttled: set[ConnectionPublishes] = set()
        self._timer = Timer(clock)

    def change(self, rate: Rate) -> None:
        """Replace the rate, and resume connections paused by the old rate."""
        if rate != self._rate:
            self._rate = rate
            self._limiter.change(rate)
            self.limits = self._limiter.limited
            self.stop()

    def published(self, connection: ConnectionPublishes, messages: int, size_bytes: int) -> None:
        """Count a connection's messages; above the rate, pause reading from the connection."""
        self._limiter.take(messages, size_bytes)
        wait = self._limiter.seconds_until_more()
        if wait:
            self.limited_times += 1
            self._throttled.add(connection)
            connection.throttle(self)
            self._timer.arm(wait, self._look)

    def forget(self, connection: ConnectionPublishes) -> None:
        """Forget a lost connection, which is never resumed."""
        self._throttled.discard(connection)

    def stop(self) -> None:
        """Resume reading from all paused connections."""
        self._timer.stop()
        throttled, self._throttled = self._throttled, set()
        for connection in throttled:
            connection.lift(self)

    def _look(self) -> None:
        wait = self._limiter.seconds_until_more()
        if wait:
            self._timer.arm(wait, self._look)
        else:
            self.stop()


class PublishLimits(NamedTuple):
    """The limits that a broker applies to all publishing connections.

    Attributes:
        buffer: Limits the bytes of all connections' in-flight messages.
        rate: Limits the publish rate of the whole broker (brokerPublisherThrottlingMaxMessageRate,
            ...MaxByteRate).
        max_pending: The largest number of in-flight messages of a connection
            (maxPendingPublishRequestsPerConnection); 0 or less is no limit.
    """

    buffer: PublishBuffer
    rate: PublishRate
    max_pending: int

    def follow(self, config: PublishingConfig) -> None:
        """Apply the publish limits of a configuration that was changed at run time."""
        self.rate.change(_broker_rate(config))
        self.buffer.max_bytes = config.buffer_bytes


def publish_limits(config: PublishingConfig, clock: Clock) -> PublishLimits:
    """Return the publish limits that a broker's configuration sets."""
    buffer = PublishBuffer(config.buffer_bytes)
    return PublishLimits(buffer, PublishRate(_broker_rate(config), clock), config.max_pending)


def _broker_rate(config: PublishingConfig) -> Rate:
    return Rate(config.broker_messages_per_second, config.broker_bytes_per_second)


class ConnectionPublishes:
    """A connection's unstored messages, and the reasons for not reading from it.

    Attributes:
        pending: The number of in-flight messages.
        size_bytes: Bytes of the in-flight messages.
    """

    def __init__(self, gate: ReadGate, limits: PublishLimits) -> None:
        self._gate = gate
        self._buffer = limits.buffer
        self._broker_rate = limits.rate
        self._max_pending = limits.max_pending
        self._reasons: set[object] = set()
        self.pending = 0
        self.size_bytes = 0

    def producer_opens(self) -> None:
        """Pause reading before a new producer's first message while the buffer is full."""
        self._buffer.check(self)

    def begun(self, size_bytes: int) -> None:
        """Count a message as received but not stored yet; pause reading above a limit."""
        self.pending += 1
        self.size_bytes += size_bytes
        self._buffer.add(self, size_bytes)
        if 0 < self._max_pending <= self.pending:
            self.throttle(self)

    def ended(self, size_bytes: int) -> None:
        """Count a message as no longer pending: it was stored, or lost when the ledger failed."""
        self.pending -= 1
        self.size_bytes -= size_bytes
        self._buffer.remove(size_bytes)
        if self._reasons and self.pending <= self._max_pending // 2:
            self.lift(self)

    def published(self, messages: int, size_bytes: int) -> None:
        """Count messages against the publish rate of the whole broker."""
        if self._broker_rate.limits:
            self._broker_rate.published(self, messages, size_bytes)

    def throttle(self, reason: object) -> None:
        """Pause reading from the connection for a reason; no-op if the reason is active already."""
        self._reasons.add(reason)
        self._gate.close_for(PauseCause.PENDING_PUBLISHES)

    def lift(self, reason: object) -> None:
        """Remove a reason for pausing the connection; resume reading if no other reason remains."""
        self._reasons.discard(reason)
        if not self._reasons:
            self._gate.open_for(PauseCause.PENDING_PUBLISHES)

    def lost(self) -> None:
        """Forget all reasons for pausing, because the connection is lost.

        Its received messages are still stored.
        """
        for reason in tuple(self._reasons):
            if isinstance(reason, (PublishBuffer, PublishRate)):
                reason.forget(self)
        self._reasons.clear()
