"""The configuration keys with advised values, and the values on broker and proxy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.documents.server_keys import known_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.documents.model import Role

_LIST, _CHANNEL = "maxTopicListInFlight", "pulsarChannel"
_HEAP, _DIRECT = (f"{_LIST}{kind}MemSizePermitsAcquire" for kind in ("Heap", "Direct"))
_SWITCH = f"{_CHANNEL}PauseReceivingRequestsIfUnwritable"
MEMORY = ("direct_mb", "heap_mb")
"""Keys changed by the search; direct memory comes first, as it waits for readers."""

WAITS = ("heap_timeout_millis", "direct_timeout_millis")


def _key(name: str, shipped: Any, title: str = "") -> Any:  # noqa: ANN401 - a field of its type
    return field(default=shipped, metadata={"key": name, "title": title})


@dataclass(frozen=True)
class Limits:
    """The topic-list limits and flow control of one server; the defaults are Pulsar's."""

    heap_mb: int = _key(f"{_LIST}HeapMemSizeMB", 100, "heap MB")
    direct_mb: int = _key(f"{_LIST}DirectMemSizeMB", 100, "direct MB")
    heap_timeout_millis: int = _key(f"{_HEAP}TimeoutMillis", 25_000, "heap wait ms")
    direct_timeout_millis: int = _key(f"{_DIRECT}TimeoutMillis", 25_000, "direct wait ms")
    heap_queue: int = _key(f"{_HEAP}QueueSize", 10_000, "heap queue")
    direct_queue: int = _key(f"{_DIRECT}QueueSize", 10_000, "direct queue")
    high_water_mark: int = _key(f"{_CHANNEL}WriteBufferHighWaterMark", 65_536, "high water mark")
    low_water_mark: int = _key(f"{_CHANNEL}WriteBufferLowWaterMark", 32_768, "low water mark")
    pause: bool = _key(_SWITCH, shipped=False, title="pause (PIP-434)")
    cooldown_millis: int = _key(f"{_CHANNEL}PauseReceivingCooldownMs", 5_000)
    cooldown_permits: int = _key(f"{_CHANNEL}PauseReceivingCooldownRateLimitPermits", 5)
    cooldown_period_millis: int = _key(f"{_CHANNEL}PauseReceivingCooldownRateLimitPeriodMs", 10)

    def __str__(self) -> str:
        """Return the memory limits as text."""
        return ", ".join(
            f"{size} MB {memory}" if size > 0 else f"{memory} without a limit"
            for size, memory in ((self.heap_mb, "heap"), (self.direct_mb, "direct"))
        )

    @property
    def accounted_mb(self) -> int:
        """The heap and direct limits together, in MB."""
        return self.heap_mb + self.direct_mb

    def keys(self) -> dict[str, str]:
        """Return the limits as configuration keys, each with its value."""
        return {key: str(getattr(self, name)).lower() for name, key in KEYS.items()}


KEYS: dict[str, str] = {each.name: each.metadata["key"] for each in fields(Limits)}
"""Fields of :class:`Limits` -> keys of broker.conf and proxy.conf."""
TITLES = {each.name: title for each in fields(Limits) if (title := each.metadata["title"])}
"""Advised fields of :class:`Limits` -> names in a table."""
FLOW_KEYS = frozenset(key for key in KEYS.values() if key.startswith(_CHANNEL))
"""Keys of flow control in Floodgate's proxy, absent from Pulsar's proxy."""


def limits_of(keys: Mapping[str, str], *, pause: bool = False) -> Limits:
    """Return the limits set by a server's configuration keys; keys not set have the defaults.

    Args:
        keys: The keys in the server's configuration file.
        pause: The default of the switch that pauses reading (PIP-434).
    """
    checked = known_keys("broker").check(keys)
    found: dict[str, Any] = {name: checked.value(key) for name, key in KEYS.items()}
    if not checked.is_set(KEYS["pause"]):
        found["pause"] = pause
    return Limits(**found)


@dataclass(frozen=True)
class Setting:
    """The topic-list limits of a broker and, if clients connect through a proxy, of the proxy.

    ``proxy`` is None if clients connect to the broker directly.
    """

    broker: Limits
    proxy: Limits | None = None

    def __str__(self) -> str:
        """Return the servers' memory limits as text, only once if equal."""
        each = {server: str(self.of(server)) for server in self.servers}
        if len({*each.values()}) == 1:
            return each["broker"]
        return "; ".join(f"{server} {told}" for server, told in each.items())

    def of(self, server: Role) -> Limits:
        """Return the limits of one of the servers, given its role."""
        limits = self.broker if server == "broker" else self.proxy
        assert limits is not None, server
        return limits

    @property
    def servers(self) -> tuple[Role, ...]:
        """The roles of the servers, in the order in which a request passes the servers."""
        return ("broker",) if self.proxy is None else ("proxy", "broker")

    def with_server(self, server: Role, other: Setting) -> Setting:
        """Return a setting with the limits of one server taken from another setting."""
        limits: Any = {server: other.of(server)}
        return replace(self, **limits)

    def keys(self) -> dict[str, dict[str, str]]:
        """Return each server's limits as configuration keys, each with its value."""
        return {server: self.of(server).keys() for server in self.servers}


class Knob(NamedTuple):
    """A memory limit or timeout of a server; the search may change the value."""

    server: Role
    name: str

    def value(self, setting: Setting) -> int:
        """Return the value of the limit in a setting."""
        return int(getattr(setting.of(self.server), self.name))

    def set(self, setting: Setting, value: int) -> Setting:
        """Return a setting with another value of the limit."""
        changed: Any = {self.name: value}
        return replace(setting, **{self.server: replace(setting.of(self.server), **changed)})


def scaled(setting: Setting, factor: float, least: Setting) -> Setting:
    """Multiply all memory limits by a factor, rounding up, but not below those of ``least``."""
    for knob in memory_knobs(setting):
        value = math.ceil(factor * knob.value(setting))
        setting = knob.set(setting, max(value, knob.value(least)))
    return setting


def raised(setting: Setting, factor: float, accounted_mb: int) -> Setting:
    """Multiply all memory limits by a factor, up to the memory allowed by the goal."""
    for knob in memory_knobs(setting):
        value = knob.value(setting)
        room = max(0, accounted_mb - setting.of(knob.server).accounted_mb)
        setting = knob.set(setting, min(math.ceil(factor * value), value + room))
    return setting


def capped(setting: Setting, most: Setting) -> Setting:
    """Reduce the memory limits of a setting to the limits of ``most`` where larger."""
    for knob in memory_knobs(most):
        setting = knob.set(setting, min(knob.value(setting), knob.value(most)))
    return setting


def larger_of(setting: Setting, in_force: Setting, accounted_mb: int) -> Setting:
    """Return the present limits, with each memory limit raised to the searched one if larger.

    If a raised limit leaves less of the accountable memory, the other limit gets the rest.
    """
    raised = {knob for knob in memory_knobs(setting) if knob.value(setting) > knob.value(in_force)}
    for knob in raised:
        in_force = knob.set(in_force, knob.value(setting))
    for knob in memory_knobs(setting):
        beyond = in_force.of(knob.server).accounted_mb - accounted_mb
        if knob not in raised and beyond > 0:
            in_force = knob.set(in_force, knob.value(in_force) - beyond)
    return in_force


def with_waits(setting: Setting, other: Setting) -> Setting:
    """Return a setting with the timeouts of another setting."""
    for knob in (Knob(server, name) for server in setting.servers for name in WAITS):
        setting = knob.set(setting, knob.value(other))
    return setting


def memory_knobs(setting: Setting) -> list[Knob]:
    """Return the memory limits changed by the search: heap and direct memory of each server."""
    return [Knob(server, name) for server in setting.servers for name in MEMORY]
