"""Flow control of a connection: pauses reading while responses stay unread, then limits its rate.

Reading pauses when the outbound buffer becomes unwritable, and resumes when it is writable again.
For some time afterwards (the cooldown), commands are counted: the first command beyond the permits
is still processed; later commands wait for the end of the limiter's period. PING and PONG are not
counted.

Source: PIP-434; upstream ServerCnx.channelWritabilityChanged and messageReceived.
Differs: pauses are counted (limiter.flow.totals), where upstream logs each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import WriteBufferMarks

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from limiter.flow.read_gate import ReadGate


@dataclass(frozen=True, slots=True)
class CooldownRules:
    """Limit of a connection's request rate for some time after its reading resumes.

    Attributes:
        permits: Commands allowed in a period (pulsarChannelPauseReceivingCooldownRateLimitPermits).
        period_seconds: The length of the period
            (pulsarChannelPauseReceivingCooldownRateLimitPeriodMs).
        window_seconds: The time for which the limit applies
            (pulsarChannelPauseReceivingCooldownMs); 0 or less for no limit.
    """

    permits: int = 5
    period_seconds: float = 0.010
    window_seconds: float = 5.0

    @property
    def limits(self) -> bool:
        """True if the request rate is limited after a pause."""
        return self.window_seconds > 0


class TimedRateLimiter:
    """Rate limiter with permits for each period while a window is open, otherwise unlimited.

    Two sets of keys configure it: the released keys (permits per period, for a number of
    milliseconds) and the proposal's (a rate per second, for a number of seconds).

    For one event loop. A period begins with the first request after the previous period; unused
    permits are lost. Opening the window refills nothing.

    Source: upstream TimedSingleThreadRateLimiter.
    Differs: the clock is monotonic.
    """

    def __init__(self, permits: int, period_seconds: float, clock: Clock) -> None:
        self.permits = permits
        self.period_seconds = period_seconds
        self.remaining = permits
        self._clock = clock
        self._period_began = clock.now()
        self._window_ends: float | None = None

    def open_window(self, seconds: float) -> None:
        """Limit the rate for ``seconds``; 0 or less closes the window."""
        self._window_ends = self._clock.now() + seconds if seconds > 0 else None

    def acquire(self, permits: int) -> int:
        """Take up to ``permits`` permits without waiting, and return the number granted."""
        if permits < 0:
            return 0
        if self._window_ends is None:
            return permits
        now = self._clock.now()
        if now > self._window_ends:
            return permits
        if now > self._period_began + self.period_seconds:
            self.remaining = self.permits
            self._period_began = now
        granted = min(permits, self.remaining)
        self.remaining -= granted
        return granted


@dataclass(frozen=True, slots=True)
class FlowRules:
    """Rules for pausing the reading of a connection.

    Attributes:
        marks: pulsarChannelWriteBufferHighWaterMark and pulsarChannelWriteBufferLowWaterMark.
        pause_if_unwritable: pulsarChannelPauseReceivingRequestsIfUnwritable; enables the cooldown,
            too.
        cooldown: The rate of commands after a resume.
        max_response_bytes: floodgateMaxInFlightResponseBytesPerConnection; 0 is unlimited.
    """

    marks: WriteBufferMarks = field(default_factory=WriteBufferMarks)
    pause_if_unwritable: bool = False
    cooldown: CooldownRules = field(default_factory=CooldownRules)
    max_response_bytes: int = 0


class FlowControl:
    """Flow control of a connection: opens and closes the connection's read gate."""

    def __init__(self, rules: FlowRules, gate: ReadGate, clock: Clock) -> None:
        self._rules = rules
        self._gate = gate
        self._clock = clock
        cooldown = rules.cooldown
        self._counts = rules.pause_if_unwritable and cooldown.limits
        self._limiter = TimedRateLimiter(cooldown.permits, cooldown.period_seconds, clock)
        self._timer: TimerHandle | None = None

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading after the outbound buffer crossed a water mark."""
        if not self._rules.pause_if_unwritable:
            return
        if writable:
            self._gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)
            self._limiter.open_window(self._rules.cooldown.window_seconds)
        else:
            self._gate.close_for(PauseCause.OUTBOUND_BUFFER_FULL)

    def command_received(self) -> None:
        """Count a command other than PING and PONG; pause reading if the rate is exceeded."""
        if not self._counts or self._limiter.acquire(1) or self._timer is not None:
            return
        due = self._clock.now() + self._rules.cooldown.period_seconds
        self._timer = self._clock.call_at(due, self._period_over)
        self._gate.close_for(PauseCause.COOLDOWN)

    def _period_over(self) -> None:
        self._timer = None
        self._gate.open_for(PauseCause.COOLDOWN)

    def lift_cooldown(self) -> None:
        """Stop limiting the rate of commands."""
        self._counts = False

    def stop(self) -> None:
        """Disable flow control, and resume reading if it was paused."""
        self.end()
        self._gate.open_for(PauseCause.COOLDOWN)
        self._gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)

    def end(self) -> None:
        """Cancel the timer of a closed connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
