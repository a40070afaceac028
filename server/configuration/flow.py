"""Configuration of flow control (PIP-434), keep-alive and slow peers, in bytes and seconds.

The released PIP-434 has other keys for the rate after a resume than its proposal. Both are read;
the released keys win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.flow.flow_control import CooldownRules, FlowRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.slow_peers.peer import SlowPeerRules
from server.configuration.settings import Key, Read, Settings, megabytes, milliseconds

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

_CHANNEL = "pulsarChannel"
HIGH_WATER_MARK_KEY = f"{_CHANNEL}WriteBufferHighWaterMark"
LOW_WATER_MARK_KEY = f"{_CHANNEL}WriteBufferLowWaterMark"
PAUSE_KEY = f"{_CHANNEL}PauseReceivingRequestsIfUnwritable"
COOLDOWN_KEY = f"{_CHANNEL}PauseReceivingCooldownMs"
COOLDOWN_PERMITS_KEY = f"{_CHANNEL}PauseReceivingCooldownRateLimitPermits"
COOLDOWN_PERIOD_KEY = f"{_CHANNEL}PauseReceivingCooldownRateLimitPeriodMs"
PROPOSED_RATE_KEY = f"{_CHANNEL}RateLimitingRateAfterResumeFromUnreadable"
PROPOSED_SECONDS_KEY = f"{_CHANNEL}RateLimitingSecondsAfterResumeFromUnreadable"
_SHIPPED_KEYS = (COOLDOWN_KEY, COOLDOWN_PERMITS_KEY, COOLDOWN_PERIOD_KEY)
_PROPOSED_KEYS = (PROPOSED_RATE_KEY, PROPOSED_SECONDS_KEY)
_PROPOSED_PERIOD_SECONDS = 1.0

GRACE_KEY = "floodgateSlowPeerGraceMs"
PENDING_OUTBOUND_KEY = "floodgateMaxPendingOutboundMB"
_SLOW_PEERS = SlowPeerRules()


def _water_marks(checked: CheckedKeys) -> WriteBufferMarks:
    """Return the high and low water marks of outbound buffers; refuse a low mark above the high.

    Source: PIP-434. Differs: upstream accepts such a pair and then refuses every connection.
    """
    high, low = checked.integer(HIGH_WATER_MARK_KEY), checked.integer(LOW_WATER_MARK_KEY)
    if low == 0 and checked.flag(PAUSE_KEY) and not checked.pulsar_compatible:
        checked.refuse(
            f"{LOW_WATER_MARK_KEY}=0: nothing is below it, so that a connection that was "
            "paused once would never be read again; set at least 1"
        )
    if low > high:
        checked.refuse(
            f"{LOW_WATER_MARK_KEY}={low} is above {HIGH_WATER_MARK_KEY}={high}: the low mark "
            "must not be above the high mark"
        )
        return WriteBufferMarks(high, high)
    return WriteBufferMarks(high, low)


def _cooldown(checked: CheckedKeys) -> CooldownRules:
    """Return the request rate that a connection is limited to after a pause.

    The keys of released Pulsar are preferred to those of the proposal.
    """
    shipped = [key for key in _SHIPPED_KEYS if checked.is_set(key)]
    proposed = [key for key in _PROPOSED_KEYS if checked.is_set(key)]
    rate, seconds = (checked.value(key) for key in _PROPOSED_KEYS)
    rules = CooldownRules(
        checked.integer(COOLDOWN_PERMITS_KEY),
        checked.integer(COOLDOWN_PERIOD_KEY) / 1000,
        checked.integer(COOLDOWN_KEY) / 1000,
    )
    if shipped and proposed:
        checked.warn(
            f"{', '.join(proposed)} without effect: {', '.join(shipped)} "
            "says how fast a connection may ask after a pause; remove one of the two kinds"
        )
    if proposed and not shipped and isinstance(rate, int) and isinstance(seconds, int):
        return CooldownRules(rate, _PROPOSED_PERIOD_SECONDS, seconds)
    return rules


class FlowConfig(Settings):
    """The flow control settings for a process's connections.

    Profile ``pulsar`` pauses and closes no connection by itself, as upstream.
    """

    pause_if_unwritable: bool = Key(PAUSE_KEY, floodgate=True)
    marks: WriteBufferMarks = Read(_water_marks, HIGH_WATER_MARK_KEY, LOW_WATER_MARK_KEY)
    cooldown: CooldownRules = Read(_cooldown)
    max_response_bytes: int = Key(
        "floodgateMaxInFlightResponseBytesPerConnection", floodgate=1 << 20, pulsar=0
    )
    grace_seconds: float = Key(
        GRACE_KEY, milliseconds, floodgate=round(1000 * _SLOW_PEERS.grace_seconds), pulsar=0
    )
    max_unwritable_seconds: int = Key(
        "floodgateMaxUnwritableSeconds",
        floodgate=round(_SLOW_PEERS.max_unwritable_seconds),
        pulsar=0,
    )
    min_drain_bytes_per_second: int = Key("floodgateMinDrainRateBytesPerSecond")
    max_pending_outbound_bytes: int = Key(PENDING_OUTBOUND_KEY, megabytes, floodgate=256, pulsar=0)
    """Most pending bytes for all peers together without a permit of the memory limiter; 0 is
    unlimited."""
    keep_alive_seconds: int = Key("keepAliveIntervalSeconds")
    """0 or less: no keep-alive."""

    @property
    def rules(self) -> FlowRules:
        """The rules for pausing a connection, and for its request rate after the pause."""
        return FlowRules(
            self.marks, self.pause_if_unwritable, self.cooldown, self.max_response_bytes
        )

    @property
    def slow_peers(self) -> SlowPeerRules:
        """The rules for closing connections whose peers do not read."""
        return SlowPeerRules(
            self.grace_seconds, self.max_unwritable_seconds, self.min_drain_bytes_per_second
        )
