"""The keys that advice is about, their values on broker and proxy, and bounds of them.

Bounds hold before anything is tried. A limit is at least the largest single answer; direct memory
that answers pin is what readers take times how long (Little's law for bytes); a queue takes the
burst; and all waits on the way of one request end before its client gives up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.documents.server_keys import known_keys
from loadgen.units import MB_BYTES
from proto.frames import FRAME_PADDING_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.documents.model import Role
    from loadgen.studies.advise.question import Goal, NamespaceShape, Workload

_LIST, _CHANNEL = "maxTopicListInFlight", "pulsarChannel"
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
MEMORY = ("direct_mb", "heap_mb")
"""Keys that are searched, in the order of what binds: direct memory waits for readers."""
SERVED_PER_SECOND = 50.0
"""Answers of 1 MB that a first guess expects of a server: no limit has anything to do with it."""
SHORTEST_WAIT_MILLIS = 1_000
_MARGIN_SECONDS = 1.0
_QUEUE_AS_SHIPPED = 10_000
_HEAP_PART = 4
"""A quarter of what may be accounted is heap, at first."""


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

    def of(self, server: Role) -> Limits:
        """Return the values of one server."""
        limits = self.broker if server == "broker" else self.proxy
        assert limits is not None, server
        return limits

    @property
    def servers(self) -> tuple[Role, ...]:
        """The servers that there are, the one that clients ask first."""
        return ("broker",) if self.proxy is None else ("proxy", "broker")

    def keys(self) -> dict[str, dict[str, str]]:
        """Return the values of each server as its configuration file says them."""
        return {server: self.of(server).keys() for server in self.servers}

    def on_all(self, **values: Any) -> Setting:  # noqa: ANN401 - of any field
        """Return the same with some values on every server."""
        found = self
        for server in self.servers:
            found = replace(found, **{server: replace(found.of(server), **values)})
        return found

    @property
    def accounted_mb(self) -> list[int]:
        """The most that the limiter of each server can hold."""
        return [limits.heap_mb + limits.direct_mb for limits in map(self.of, self.servers)]


class Knob(NamedTuple):
    """One key of one server."""

    server: Role
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
        changed: Any = {self.name: value}
        return replace(setting, **{self.server: replace(setting.of(self.server), **changed)})

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


def memory_knobs(setting: Setting) -> list[Knob]:
    """Return the keys that are searched: the limits of each server, in the order of what binds."""
    return [Knob(server, name) for server in setting.servers for name in MEMORY]


# -- bounds ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Least:
    """The smallest limits, in MB, that hold the largest answer at all."""

    heap_mb: int
    direct_mb: int


def least_limits(shape: NamespaceShape) -> Least:
    """Return the limits below which a namespace is never listed."""
    return Least(_megabytes(shape.charged_bytes), _megabytes(shape.answer_bytes))


def frame_limit_bytes(workload: Workload) -> int:
    """Return the size that an answer may have; a peer closes the connection on a larger one."""
    return workload.max_message_bytes + FRAME_PADDING_BYTES


def derived(workload: Workload, setting: Setting, *, waits_for_direct_first: bool) -> Setting:
    """Return a setting with the timeouts and queues that follow from its limits.

    Args:
        workload: The load.
        setting: Its limits count.
        waits_for_direct_first: Profile ``floodgate``: no heap is held while direct memory is
            waited for.
    """
    reading = workload.readers.seconds(workload.largest.answer_bytes)
    total = max(0.0, workload.operation_timeout_seconds - reading - _MARGIN_SECONDS)
    # The proxy is where requests wait: it holds them while the broker answers, and what it lets
    # through is less than the broker takes.
    shares = {"broker": 1.0} if setting.proxy is None else {"proxy": 2 / 3, "broker": 1 / 3}
    queue = needed_queue(workload)
    found = setting
    for server in setting.servers:
        limits, seconds = setting.of(server), shares[server] * total
        direct = _direct_wait_seconds(workload, limits, seconds)
        if waits_for_direct_first:
            direct = seconds * 2 / 3
        waits: Any = {
            "heap_timeout_millis": _millis(seconds - direct),
            "direct_timeout_millis": _millis(direct),
        }
        limits = replace(limits, **waits, heap_queue=queue, direct_queue=queue)
        found = replace(found, **{server: limits})
    return found


def _direct_wait_seconds(workload: Workload, limits: Limits, seconds: float) -> float:
    """Return how long to wait for direct memory, of so many seconds for heap and it together.

    Only requests that hold heap wait for it, so twice their turns is plenty; the rest of the time
    is for the queue before the heap.
    """
    mean = workload.mean
    holders = limits.heap_mb * MB_BYTES // max(1, mean.charged_bytes)
    places = max(1, limits.direct_mb * MB_BYTES // max(1, mean.answer_bytes))
    turns = math.ceil((min(holders, workload.clients) + 1) / places)
    held = workload.readers.held_seconds(mean.answer_bytes)
    wanted = _MARGIN_SECONDS + 2 * turns * (held + 1 / SERVED_PER_SECOND)
    return min(max(wanted, seconds / 4), seconds / 2)


def needed_queue(workload: Workload) -> int:
    """Return places for the whole burst, rounded up to two digits; at least what is shipped."""
    burst = workload.clients
    if burst <= _QUEUE_AS_SHIPPED:
        return _QUEUE_AS_SHIPPED
    unit = 10 ** (len(str(burst)) - 2)
    return int(-(-burst // unit) * unit)


def guess(workload: Workload, goal: Goal, *, proxy: bool) -> Setting:
    """Return the limits that Little's law asks for, at least the least and within the budget."""
    least = least_limits(workload.largest)
    answer, readers, slow = workload.mean.answer_bytes, workload.readers, workload.slow_clients
    # Those that read pass through within the goal's time; those that never read stay.
    pinned_seconds = (workload.answers - slow) * readers.held_seconds(answer)
    direct = answer * pinned_seconds / goal.back_within_seconds
    if slow:
        held = min(readers.held_seconds(answer, slow=True), goal.back_within_seconds)
        direct += slow * answer * held / goal.back_within_seconds
    direct_mb = min(max(_megabytes(direct), least.direct_mb), goal.accounted_mb - least.heap_mb)
    heap_mb = max(least.heap_mb, _megabytes(workload.first_estimates_bytes))
    return _both(min(heap_mb, goal.accounted_mb - 1), direct_mb, proxy=proxy)


def widest(workload: Workload, goal: Goal, *, proxy: bool) -> Setting:
    """Return the largest limits that the goal allows: most of it where answers wait for readers."""
    least = least_limits(workload.largest)
    needed = _megabytes(workload.first_estimates_bytes + workload.largest.charged_bytes)
    heap_mb = max(least.heap_mb, needed, goal.accounted_mb // _HEAP_PART)
    heap_mb = min(heap_mb, goal.accounted_mb - least.direct_mb)
    return _both(heap_mb, goal.accounted_mb - heap_mb, proxy=proxy)


def _both(heap_mb: int, direct_mb: int, *, proxy: bool) -> Setting:
    limits = Limits(heap_mb=max(1, heap_mb), direct_mb=max(1, direct_mb))
    return Setting(limits, limits if proxy else None)


def _millis(seconds: float) -> int:
    return max(SHORTEST_WAIT_MILLIS, int(seconds * 10) * 100)


def _megabytes(size_bytes: float) -> int:
    return max(1, math.ceil(size_bytes / MB_BYTES))
