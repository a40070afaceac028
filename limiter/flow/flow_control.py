"""Flow control of one connection: pauses reading while it leaves answers unread, slows it after.

The outbound buffer becomes unwritable: reading pauses. It is writable again: reading resumes, and
for a while (the cooldown) commands are counted. The command for which there is no permit is still
handled; those after it wait until the limiter's period is over. PING and PONG are not counted.

Source: PIP-434; upstream ServerCnx.channelWritabilityChanged and messageReceived.
Differs: what is logged there for each pause is counted here (limiter.flow.totals).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause
from limiter.flow.cooldown import CooldownRules, TimedRateLimiter
from limiter.flow.outbound_buffer import WriteBufferMarks

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from limiter.flow.read_gate import ReadGate


@dataclass(frozen=True, slots=True)
class FlowRules:
    """The rules by which a connection is paused.

    Attributes:
        marks: pulsarChannelWriteBufferHighWaterMark and LowWaterMark.
        pause_if_unwritable: pulsarChannelPauseReceivingRequestsIfUnwritable; it switches the
            cooldown, too.
        cooldown: How fast commands are taken after a resume.
        max_response_bytes: floodgateMaxInFlightResponseBytesPerConnection; 0 is unlimited.
    """

    marks: WriteBufferMarks = field(default_factory=WriteBufferMarks)
    pause_if_unwritable: bool = False
    cooldown: CooldownRules = field(default_factory=CooldownRules)
    max_response_bytes: int = 0


class FlowControl:
    """Drives the read gate of one connection."""

    def __init__(self, rules: FlowRules, gate: ReadGate, clock: Clock) -> None:
        self._rules = rules
        self._gate = gate
        self._clock = clock
        cooldown = rules.cooldown
        self._counts = rules.pause_if_unwritable and cooldown.limits
        self._limiter = TimedRateLimiter(cooldown.permits, cooldown.period_seconds, clock)
        self._timer: TimerHandle | None = None

    def writability_changed(self, *, writable: bool) -> None:
        """The outbound buffer crossed a mark."""
        if not self._rules.pause_if_unwritable:
            return
        if writable:
            self._gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)
            self._limiter.open_window(self._rules.cooldown.window_seconds)
        else:
            self._gate.close_for(PauseCause.OUTBOUND_BUFFER_FULL)

    def command_received(self) -> None:
        """A command is about to be handled that is neither PING nor PONG."""
        if not self._counts or self._limiter.acquire(1) or self._timer is not None:
            return
        due = self._clock.now() + self._rules.cooldown.period_seconds
        self._timer = self._clock.call_at(due, self._period_over)
        self._gate.close_for(PauseCause.COOLDOWN)

    def _period_over(self) -> None:
        self._timer = None
        self._gate.open_for(PauseCause.COOLDOWN)

    def lift_cooldown(self) -> None:
        """Count commands no more."""
        self._counts = False

    def stop(self) -> None:
        """Pause the connection for none of this any more."""
        self.end()
        self._gate.open_for(PauseCause.COOLDOWN)
        self._gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)

    def end(self) -> None:
        """The connection is gone: no timer of it is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
