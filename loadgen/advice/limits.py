"""The keys that advice is about, their values on broker and proxy, and the steps between values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from loadgen.documents.server_keys import known_keys
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

Server = Literal["broker", "proxy"]

_LIST = "maxTopicListInFlight"
_CHANNEL = "pulsarChannel"
KEYS = {
    "heap_mb": f"{_LIST}HeapMemSizeMB",
    "direct_mb": f"{_LIST}DirectMemSizeMB",
    "heap_timeout_millis": f"{_LIST}HeapMemSizePermitsAcquireTimeoutMillis",
    "direct_timeout_millis": f"{_LIST}DirectMemSizePermitsAcquireTimeoutMillis",
    "heap_queue": f"{_LIST}HeapMemSizePermitsAcquireQueueSize",
    "direct_queue": f"{_LIST}DirectMemSizePermitsAcquireQueueSize",
    "high_water_mark": f"{_CHANNEL}WriteBufferHighWaterMark",
    "low_water_mark": f"{_CHANNEL}WriteBufferLowWaterMark",
    "pause": f"{_CHANNEL}PauseReceivingRequestsIfUnwritable",
    "cooldown_millis": f"{_CHANNEL}PauseReceivingCooldownMs",
    "cooldown_permits": f"{_CHANNEL}PauseReceivingCooldownRateLimitPermits",
    "cooldown_period_millis": f"{_CHANNEL}PauseReceivingCooldownRateLimitPeriodMs",
}
"""Fields of :class:`Limits` -> keys of broker.conf and proxy.conf."""
FLOW_KEYS = frozenset(key for key in KEYS.values() if key.startswith(_CHANNEL))
"""A Pulsar proxy has none of these; Floodgate's has all."""


@dataclass(frozen=True)
class Limits:
    """The values of one server; the defaults are those that Pulsar ships."""

    heap_mb: int = 100
    direct_mb: int = 100
    heap_timeout_millis: int = 25_000
    direct_timeout_millis: int = 25_000
    heap_queue: int = 10_000
    direct_queue: int = 10_000
    high_water_mark: int = 65_536
    low_water_mark: int = 32_768
    pause: bool = False
    cooldown_millis: int = 5_000
    cooldown_permits: int = 5
    cooldown_period_millis: int = 10

    @property
    def accounted_bytes(self) -> int:
        """The most that the limiter of the server can hold."""
        return (self.heap_mb + self.direct_mb) * MB_BYTES

    def keys(self) -> dict[str, str]:
        """Return the values as a configuration file says them."""
        return {key: str(getattr(self, name)).lower() for name, key in KEYS.items()}


def limits_of(keys: Mapping[str, str], *, pause: bool = False) -> Limits:
    """Return a server's values; what its configuration does not say is as shipped.

    Args:
        keys: Of its file, which it starts with.
        pause: The switch, where the file does not say it.
    """
    checked = known_keys("broker").check(keys)
    found: dict[str, Any] = {name: checked.value(key) for name, key in KEYS.items()}
    if not checked.is_set(KEYS["pause"]):
        found["pause"] = pause
    return Limits(**found)


@dataclass(frozen=True)
class Setting:
    """The values of both servers; ``proxy`` is None where clients ask the broker."""

    broker: Limits
    proxy: Limits | None = None

    def of(self, server: Server) -> Limits:
        """Return the values of one server."""
        limits = self.broker if server == "broker" else self.proxy
        assert limits is not None, server
        return limits

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers that there are, the one that clients ask first."""
        return ("broker",) if self.proxy is None else ("proxy", "broker")


class Knob(NamedTuple):
    """One key of one server."""

    server: Server
    name: str

    @property
    def key(self) -> str:
        """Its name in the server's configuration file."""
        return KEYS[self.name]

    def value(self, setting: Setting) -> int:
        """Return its value."""
        return int(getattr(setting.of(self.server), self.name))

    def set(self, setting: Setting, value: int) -> Setting:
        """Return the same setting with another value of this key."""
        new: Any = bool(value) if self.name == "pause" else value
        changed = replace(setting.of(self.server), **{self.name: new})
        if self.server == "broker":
            return replace(setting, broker=changed)
        return replace(setting, proxy=changed)

    def step(self, value: int) -> int:
        """Return the size of a step: the larger of 1 (MB) and a tenth."""
        return max(1, -(-value // 10))

    def below(self, setting: Setting) -> Setting | None:
        """Return the setting one step below; None where 0 would turn the limit off."""
        value = self.value(setting)
        lower = value - self.step(value)
        return self.set(setting, lower) if lower > 0 else None

    def above(self, setting: Setting) -> Setting:
        """Return the setting one step above."""
        value = self.value(setting)
        return self.set(setting, value + self.step(value))


MEMORY = ("direct_mb", "heap_mb")
"""Keys that are searched, in the order of what binds: direct memory waits for readers."""
