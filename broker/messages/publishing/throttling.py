"""The limits of publishing, as reasons to read a connection no more for a while.

No error is sent: a client that is not read waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.policies.effective import Rate
from broker.policies.rate_limiter import RateLimiter
from limiter.flow.causes import PauseCause

if TYPE_CHECKING:
    from broker.configuration.publishing_keys import PublishingConfig
    from limiter.clock import Clock, TimerHandle
    from limiter.flow.read_gate import ReadGate

_SHORTEST_WAIT_SECONDS = 0.001


class PublishBuffer:
    """The messages of all connections that are not stored yet (maxMessagePublishBufferSizeInMB).

    While it is full, a connection that publishes is not read, until it is half empty.

    Args:
        max_bytes: 0 or less is no limit.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0
        self._throttled: set[ConnectionPublishes] = set()

    def add(self, connection: ConnectionPublishes, size_bytes: int) -> None:
        """Take a message of a connection."""
        self.size_bytes += size_bytes
        if 0 < self.max_bytes < self.size_bytes:
            self._throttled.add(connection)
            connection.throttle(self)

    def remove(self, size_bytes: int) -> None:
        """Let go of a message."""
        self.size_bytes -= size_bytes
        if self._throttled and self.size_bytes <= self.max_bytes // 2:
            throttled, self._throttled = self._throttled, set()
            for connection in throttled:
                connection.lift(self)

    def forget(self, connection: ConnectionPublishes) -> None:
        """Forget a connection that is lost."""
        self._throttled.discard(connection)


class PublishRate:
    """The rate at which a topic, or the whole broker, takes messages.

    What is above it is stored all the same, and then the connection is not read until the rate
    has caught up.

    Attributes:
        limits: There is a limit at all.
        limited_times: How often a message found the rate used up (publishRateLimitedTimes).

    Source: upstream PublishRateLimiterImpl.
    """

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._limiter = RateLimiter(rate, clock, _SHORTEST_WAIT_SECONDS)
        self.limits = self._limiter.limited
        self.limited_times = 0
        self._throttled: set[ConnectionPublishes] = set()
        self._timer: TimerHandle | None = None

    def change(self, rate: Rate) -> None:
        """Put another rate in force; nobody waits for the old one."""
        if rate != self._rate:
            self._rate = rate
            self._limiter.change(rate)
            self.limits = self._limiter.limited
            self.stop()

    def published(self, connection: ConnectionPublishes, messages: int, size_bytes: int) -> None:
        """Count what a connection published, and pause it if that was too much."""
        self._limiter.take(messages, size_bytes)
        wait = self._limiter.seconds_until_more()
        if wait:
            self.limited_times += 1
            self._throttled.add(connection)
            connection.throttle(self)
            if self._timer is None:
                self._look_after(wait)

    def forget(self, connection: ConnectionPublishes) -> None:
        """Forget a connection that is lost."""
        self._throttled.discard(connection)

    def stop(self) -> None:
        """Pause nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        throttled, self._throttled = self._throttled, set()
        for connection in throttled:
            connection.lift(self)

    def _look_after(self, seconds: float) -> None:
        self._timer = self._clock.call_at(self._clock.now() + seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        wait = self._limiter.seconds_until_more()
        if wait:
            self._look_after(wait)
        else:
            self.stop()


class PublishLimits(NamedTuple):
    """The limits of one broker.

    Attributes:
        buffer: What is not stored yet.
        rate: The broker's own (brokerPublisherThrottlingMaxMessageRate, ...MaxByteRate).
        max_pending: Messages of one connection that are not stored yet
            (maxPendingPublishRequestsPerConnection); 0 or less is no limit.
    """

    buffer: PublishBuffer
    rate: PublishRate
    max_pending: int

    def follow(self, config: PublishingConfig) -> None:
        """Put a configuration that was changed at run time in force."""
        self.rate.change(_broker_rate(config))
        self.buffer.max_bytes = config.buffer_bytes


def publish_limits(config: PublishingConfig, clock: Clock) -> PublishLimits:
    """Return the limits of a configuration."""
    buffer = PublishBuffer(config.buffer_bytes)
    return PublishLimits(buffer, PublishRate(_broker_rate(config), clock), config.max_pending)


def _broker_rate(config: PublishingConfig) -> Rate:
    return Rate(config.broker_messages_per_second, config.broker_bytes_per_second)


class ConnectionPublishes:
    """Counts what one connection publishes, and keeps the reasons why it is not read.

    Attributes:
        pending: Its messages that are not stored yet.
        size_bytes: Theirs.
    """

    def __init__(self, gate: ReadGate, limits: PublishLimits) -> None:
        self._gate = gate
        self._buffer = limits.buffer
        self._broker_rate = limits.rate
        self._max_pending = limits.max_pending
        self._reasons: set[object] = set()
        self.pending = 0
        self.size_bytes = 0

    def begun(self, size_bytes: int) -> None:
        """Count a message that is being stored."""
        self.pending += 1
        self.size_bytes += size_bytes
        self._buffer.add(self, size_bytes)
        if 0 < self._max_pending <= self.pending:
            self.throttle(self)

    def ended(self, size_bytes: int) -> None:
        """Count a message that is stored, or lost with its ledger."""
        self.pending -= 1
        self.size_bytes -= size_bytes
        self._buffer.remove(size_bytes)
        if self._reasons and self.pending <= self._max_pending // 2:
            self.lift(self)

    def published(self, messages: int, size_bytes: int) -> None:
        """Count a message that was taken against the broker's rate."""
        if self._broker_rate.limits:
            self._broker_rate.published(self, messages, size_bytes)

    def throttle(self, reason: object) -> None:
        """Read the connection no more, for a reason that may be there already."""
        self._reasons.add(reason)
        self._gate.close_for(PauseCause.PENDING_PUBLISHES)

    def lift(self, reason: object) -> None:
        """Read on if this was the last reason."""
        self._reasons.discard(reason)
        if not self._reasons:
            self._gate.open_for(PauseCause.PENDING_PUBLISHES)

    def lost(self) -> None:
        """Leave what paused it: the connection is lost. Its messages are still being stored."""
        for reason in tuple(self._reasons):
            if isinstance(reason, (PublishBuffer, PublishRate)):
                reason.forget(self)
        self._reasons.clear()
