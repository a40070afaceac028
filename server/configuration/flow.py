"""Flow control keys (PIP-434, keep-alive, slow peers), read in bytes and seconds.

The released PIP-434 has other keys for the rate after a resume than its proposal. Both are read;
the released keys win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict

from limiter.flow.cooldown import CooldownRules
from limiter.flow.flow_control import FlowRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.slow_peers.peer import SlowPeerRules

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
MAX_UNWRITABLE_KEY = "floodgateMaxUnwritableSeconds"
DRAIN_RATE_KEY = "floodgateMinDrainRateBytesPerSecond"
RESPONSE_BYTES_KEY = "floodgateMaxInFlightResponseBytesPerConnection"
PENDING_OUTBOUND_KEY = "floodgateMaxPendingOutboundMB"
_MEGABYTE_BYTES = 1024 * 1024
_SLOW_PEERS = SlowPeerRules()
_DEFAULTS = {
    GRACE_KEY: round(1000 * _SLOW_PEERS.grace_seconds),
    MAX_UNWRITABLE_KEY: round(_SLOW_PEERS.max_unwritable_seconds),
    RESPONSE_BYTES_KEY: _MEGABYTE_BYTES,
    PENDING_OUTBOUND_KEY: 256,
}
"""Defaults of profile ``floodgate``; of ``pulsar`` each is 0, which is off, as upstream has none.
"""


class FlowConfig(BaseModel):
    """Flow control of a process's connections.

    Attributes:
        rules: The rules for pausing a connection.
        slow_peers: The rules for closing a non-reading peer.
        max_pending_outbound_bytes: floodgateMaxPendingOutboundMB: most pending bytes for all peers
            together without a permit of the memory limiter; 0 is unlimited.
        keep_alive_seconds: keepAliveIntervalSeconds; 0 or less: no keep-alive.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: FlowRules = FlowRules(pause_if_unwritable=True, max_response_bytes=_MEGABYTE_BYTES)
    slow_peers: SlowPeerRules = _SLOW_PEERS
    max_pending_outbound_bytes: int = 256 * _MEGABYTE_BYTES
    keep_alive_seconds: float = 30.0

    @classmethod
    def from_keys(cls, checked: CheckedKeys, *, pulsar_compatible: bool) -> Self:
        """Read the keys; contradictions become problems."""

        def own(key: str) -> int:
            default = 0 if pulsar_compatible else _DEFAULTS.get(key, 0)
            return checked.integer(key) if checked.is_set(key) else default

        pause = checked.flag(PAUSE_KEY) if checked.is_set(PAUSE_KEY) else not pulsar_compatible
        checked.value(PAUSE_KEY)
        marks = _water_marks(checked)
        if pause and not pulsar_compatible and marks.low_bytes == 0:
            checked.refuse(
                f"{LOW_WATER_MARK_KEY}=0: nothing is below it, so that a connection that was "
                "paused once would never be read again; set at least 1"
            )
        return cls(
            rules=FlowRules(marks, pause, _cooldown(checked), own(RESPONSE_BYTES_KEY)),
            slow_peers=SlowPeerRules(
                own(GRACE_KEY) / 1000, own(MAX_UNWRITABLE_KEY), own(DRAIN_RATE_KEY)
            ),
            max_pending_outbound_bytes=own(PENDING_OUTBOUND_KEY) * _MEGABYTE_BYTES,
            keep_alive_seconds=checked.integer("keepAliveIntervalSeconds"),
        )


def _water_marks(checked: CheckedKeys) -> WriteBufferMarks:
    """Read both marks; a low mark above the high mark becomes a problem.

    Source: PIP-434. Differs: upstream accepts such a pair and then refuses every connection.
    """
    high, low = checked.integer(HIGH_WATER_MARK_KEY), checked.integer(LOW_WATER_MARK_KEY)
    if low > high:
        checked.refuse(
            f"{LOW_WATER_MARK_KEY}={low} is above {HIGH_WATER_MARK_KEY}={high}: the low mark "
            "must not be above the high mark"
        )
        return WriteBufferMarks(high, high)
    return WriteBufferMarks(high, low)


def _cooldown(checked: CheckedKeys) -> CooldownRules:
    """Read the released keys, unless only the proposal's are set."""
    shipped = [key for key in _SHIPPED_KEYS if checked.is_set(key)]
    proposed = [key for key in _PROPOSED_KEYS if checked.is_set(key)]
    rate, seconds = (checked.value(key) for key in _PROPOSED_KEYS)
    rules = CooldownRules(
        checked.integer(COOLDOWN_PERMITS_KEY),
        checked.seconds(COOLDOWN_PERIOD_KEY),
        checked.seconds(COOLDOWN_KEY),
    )
    if shipped and proposed:
        checked.warn(
            f"{', '.join(proposed)} without effect: {', '.join(shipped)} "
            "says how fast a connection may ask after a pause; remove one of the two kinds"
        )
    if proposed and not shipped and isinstance(rate, int) and isinstance(seconds, int):
        return CooldownRules(rate, _PROPOSED_PERIOD_SECONDS, seconds)
    return rules
