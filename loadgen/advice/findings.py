"""The findings of an advice: each key with its value, what binds it, and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.advice.bounds import least_limits, needed_queue
from loadgen.advice.goal import Goal, Outcome, misses
from loadgen.advice.limits import FLOW_KEYS, KEYS, MEMORY, Knob, Limits, Setting
from loadgen.advice.search import OutOfTimeError, Tries, memory_knobs
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.advice.limits import Server
    from loadgen.advice.workload import Workload

_NOT_TRIED = "not tried: no time was left"
_TIMEOUTS = ("heap_timeout_millis", "direct_timeout_millis")
_QUEUES = ("heap_queue", "direct_queue")


@dataclass(frozen=True)
class KeyFinding:
    """One key of one server.

    Attributes:
        value: As the file says it.
        binds: Why it is not smaller, or not another.
        below, above: What happens one step away, with the value there.
        costs: What it costs.
        decides: True if the goal is missed one step below.
    """

    server: Server
    key: str
    value: str
    binds: str
    below: str
    above: str
    costs: str
    decides: bool = False


def findings(
    tries: Tries, setting: Setting, workload: Workload, profile: str
) -> tuple[KeyFinding, ...]:
    """Return a finding for each key of each server, after trying the neighbours of limits."""
    return tuple(_findings(tries, setting, workload, profile))


def _findings(
    tries: Tries, setting: Setting, workload: Workload, profile: str
) -> Iterator[KeyFinding]:
    for server in setting.servers:
        for name in KEYS:
            if server == "proxy" and profile == "pulsar" and KEYS[name] in FLOW_KEYS:
                continue  # a Pulsar proxy has none of them
            knob = Knob(server, name)
            if name in MEMORY:
                yield _of_memory(tries, setting, knob, workload)
            elif name in _TIMEOUTS:
                yield _of_timeout(tries, setting, knob, workload)
            elif name in _QUEUES:
                yield _of_queue(tries, setting, knob, workload)
            else:
                yield _of_flow(setting, knob, profile)


def _of_memory(tries: Tries, setting: Setting, knob: Knob, workload: Workload) -> KeyFinding:
    value = knob.value(setting)
    least_mb = least_limits(workload.largest).of(knob.name)
    lower = value - knob.step(value)
    decides = True
    if lower < least_mb:
        binds = _largest_answer(workload, knob, least_mb)
        below = (
            f"{lower}: {workload.largest.name} is never listed"
            if lower
            else "0 would turn the limit off"
        )
        decides = lower > 0
    else:
        below, missed = _neighbour(tries, knob.set(setting, lower), knob)
        decides = missed is not None and bool(missed)
        binds = _bound_by(tries, setting, knob, workload, missed)
    above, _ = _neighbour(tries, knob.above(setting), knob)
    kind = "heap" if knob.name == "heap_mb" else "direct memory"
    return KeyFinding(
        knob.server,
        knob.key,
        str(value),
        binds,
        below,
        above,
        f"up to {value} MB of {kind} for lists under way",
        decides,
    )


def _largest_answer(workload: Workload, knob: Knob, least_mb: int) -> str:
    largest = workload.largest
    size = largest.charged_bytes if knob.name == "heap_mb" else largest.answer_bytes
    return (
        f"the largest answer: {largest.name}, {largest.topics:,} names, counts "
        f"{format_bytes(size)}, so {least_mb} MB at least"
    )


def _first_estimates(setting: Setting, knob: Knob, workload: Workload) -> str:
    """Say so where first requests would wait for each other with less heap."""
    if knob.name != "heap_mb" or setting.of(knob.server).pause:
        return ""
    needed = workload.first_estimates_bytes + workload.largest.charged_bytes
    value = knob.value(setting)
    if (value - knob.step(value)) * MB_BYTES >= needed:
        return ""
    return (
        f"first requests of {len(workload.listed):,} namespaces reserve 10,240 bytes each "
        f"and wait for the rest behind all others ({format_bytes(needed)}); "
    )


def _bound_by(
    tries: Tries, setting: Setting, knob: Knob, workload: Workload, missed: list[str] | None
) -> str:
    if missed is None:
        return "the goal, as far as the time allowed to look"
    if missed:
        below = "; ".join(missed)
        return f"{_first_estimates(setting, knob, workload)}the goal: one step below {below}"
    others = [other.key for other in memory_knobs(setting) if _decides(tries, setting, other, knob)]
    if others:
        return f"another key binds: {', '.join(sorted(set(others)))}"
    return "nothing within a step: half a step of room is in it"


def _decides(tries: Tries, setting: Setting, other: Knob, knob: Knob) -> bool:
    lower = other.below(setting)
    return other != knob and lower in tries.done and bool(misses(tries.goal, tries.done[lower]))


def _of_timeout(tries: Tries, setting: Setting, knob: Knob, workload: Workload) -> KeyFinding:
    value = knob.value(setting)
    total = sum(
        each.heap_timeout_millis + each.direct_timeout_millis
        for each in map(setting.of, setting.servers)
    )
    below, missed = _neighbour(tries, knob.set(setting, value - knob.step(value)), knob)
    above, _ = _neighbour(tries, knob.above(setting), knob)
    reading = workload.readers.seconds(workload.largest.answer_bytes)
    read = f", {format_seconds(reading)} of it for reading" if reading else ""
    return KeyFinding(
        knob.server,
        knob.key,
        str(value),
        f"clients give up after {workload.operation_timeout_seconds:g} s{read}: all waits of a "
        f"request together are {format_seconds(total / 1000)}",
        below,
        above,
        f"a refusal is told up to {format_seconds(value / 1000)} late",
        bool(missed),
    )


def _of_queue(tries: Tries, setting: Setting, knob: Knob, workload: Workload) -> KeyFinding:
    value = knob.value(setting)
    lower, upper = value - knob.step(value), value + knob.step(value)
    burst = workload.clients
    if burst <= lower:
        below, missed = f"{lower}: no change, at most {burst:,} wait", None
        binds = f"nothing: {plural(burst, 'client')} wait at most, and this is as shipped"
    else:
        below, missed = _neighbour(tries, knob.set(setting, lower), knob)
        binds = f"the burst: {plural(burst, 'client')} may all wait at once"
    if needed_queue(workload) < burst:
        binds = "the operator's own"
    return KeyFinding(
        knob.server,
        knob.key,
        str(value),
        binds,
        below,
        f"{upper}: no change, nobody is refused for want of a place",
        "about 1 kB for each request that waits",
        bool(missed),
    )


_FLOW_COSTS = {
    "high_water_mark": "bytes that may wait for each connection before it counts as full",
    "low_water_mark": "none",
    "pause": "",
    "cooldown_millis": "none while nobody is paused",
    "cooldown_permits": "none while nobody is paused",
    "cooldown_period_millis": "none while nobody is paused",
}


def _of_flow(setting: Setting, knob: Knob, profile: str) -> KeyFinding:
    value = knob.value(setting)
    if knob.name == "pause":
        return _of_switch(setting.of(knob.server), knob, profile)
    lower, upper = value - knob.step(value), value + knob.step(value)
    why = "the switch is off" if profile == "pulsar" else "each client asks for one list at a time"
    return KeyFinding(
        knob.server,
        knob.key,
        str(value),
        "nothing of this load: as shipped",
        f"{lower}: no change, {why}",
        f"{upper}: no change, {why}",
        _FLOW_COSTS[knob.name],
    )


def _of_switch(limits: Limits, knob: Knob, profile: str) -> KeyFinding:
    if profile == "pulsar":
        return KeyFinding(
            knob.server,
            knob.key,
            str(limits.pause).lower(),
            "direct memory bounds what unread lists may hold; paused, a peer that does not read "
            "is spared by the keep-alive and holds it without end",
            "true: no change for clients that read; see the warning for those that do not",
            "-",
            "what is unread of messages and other answers has no bound for a connection",
        )
    return KeyFinding(
        knob.server,
        knob.key,
        str(limits.pause).lower(),
        "who does not read is asked for nothing more, and is closed while others wait for what "
        "it holds",
        "false: requests that a silent peer sends are read and answered without a bound",
        "-",
        "a peer that does not read waits for itself alone",
    )


def _neighbour(tries: Tries, setting: Setting, knob: Knob) -> tuple[str, list[str] | None]:
    """Return what happens with a setting, and what it misses; None: it was not tried."""
    value = knob.value(setting)
    try:
        outcome = tries.outcome(setting)
    except OutOfTimeError:
        return f"{value}: {_NOT_TRIED}", None
    missed = misses(tries.goal, outcome)
    return f"{value}: {told(tries.goal, outcome)}", missed


def told(goal: Goal, outcome: Outcome) -> str:
    """Say in a few words how an outcome does by a goal."""
    missed = misses(goal, outcome)
    return f"goal missed: {'; '.join(missed)}" if missed else f"goal met, {_last(outcome)}"


def _last(outcome: Outcome) -> str:
    if outcome.slowest_seconds is None:
        return "no client asked"
    return f"last client recovered after {format_seconds(outcome.slowest_seconds)}"
