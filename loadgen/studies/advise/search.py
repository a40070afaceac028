"""The search: the smallest limits that meet a goal, and what happens one step away from each key.

It knows nothing of servers: it asks a function for the outcome of a setting. A larger limit is
taken to be no worse; where an outcome says otherwise, it is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from loadgen.studies.advise.limits import (
    FLOW_KEYS,
    KEYS,
    MEMORY,
    Knob,
    Least,
    Setting,
    least_limits,
    memory_knobs,
    needed_queue,
)
from loadgen.studies.advise.question import Goal, Outcome, misses, told
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.documents.model import Role
    from loadgen.studies.advise.question import Workload

_ROUNDS = 3


class OutOfTimeError(Exception):
    """The time for tries is over: an engine has cut one."""


@dataclass
class Tries:
    """The tries of a search; each setting is tried once.

    Args:
        engine: Returns the outcome of a setting, or raises ``OutOfTimeError``.
        goal: What it is judged by.
        on_try: Told of each try when it is over, with its number.
    """

    engine: Callable[[Setting], Outcome]
    goal: Goal
    on_try: Callable[[int, Setting, Outcome], None] = lambda _number, _setting, _outcome: None
    done: dict[Setting, Outcome] = field(default_factory=dict)

    def outcome(self, setting: Setting) -> Outcome:
        """Return the outcome of a setting.

        Raises:
            OutOfTimeError: It was not tried yet, and there is no time for it.
        """
        if setting not in self.done:
            self.done[setting] = self.engine(setting)
            self.on_try(len(self.done), setting, self.done[setting])
        return self.done[setting]

    def meets(self, setting: Setting) -> bool:
        """Tell whether a setting meets the goal."""
        return not misses(self.goal, self.outcome(setting))


@dataclass(frozen=True)
class Plan:
    """The way of a search.

    Attributes:
        start: Meets the goal.
        guess: Where the answer is thought to be.
        least: Nothing below it is tried.
        derive: Returns a setting with all that follows from its limits.
    """

    start: Setting
    guess: Setting
    least: Least
    derive: Callable[[Setting], Setting] = lambda setting: setting


class Found(NamedTuple):
    """The end of a search.

    Attributes:
        setting: The one that is advised: half a step above the smallest, so that it stands in the
            middle between what meets the goal and what does not.
        smallest: The smallest limits that met the goal.
        complete: False if the time was over before every key was at its smallest.
    """

    setting: Setting
    smallest: Setting
    complete: bool


def search(tries: Tries, plan: Plan) -> Found:
    """Bisect key after key until none can be smaller, then go half a step up.

    When time runs out, what was found by then is the answer.
    """
    best, knobs = plan.start, memory_knobs(plan.start)
    try:
        best = _tried_guess(tries, plan, best)
        for _ in range(_ROUNDS):
            before = best
            for knob in knobs:
                for smaller in _smaller(tries, plan, best, knob):
                    best = smaller
            if best == before:
                break
        return Found(_with_room(tries, plan, best), best, complete=True)
    except OutOfTimeError:
        return Found(best, best, complete=False)


def _tried_guess(tries: Tries, plan: Plan, best: Setting) -> Setting:
    """Begin at the guess, or at a few steps above it, if that meets the goal already."""
    setting = plan.derive(plan.guess)
    for _ in range(_ROUNDS):
        if tries.meets(setting):
            return setting
        for knob in memory_knobs(setting):
            larger = min(2 * knob.value(setting), knob.value(plan.start))
            setting = knob.set(setting, larger)
        setting = plan.derive(setting)
    return best


def _smaller(tries: Tries, plan: Plan, best: Setting, knob: Knob) -> Iterator[Setting]:
    """Yield ever smaller values of one key that meet the goal, down to the smallest."""
    least: int = getattr(plan.least, knob.name)
    low, high = least - 1, knob.value(best)
    # Most keys end at their least value or one step under where they are.
    first = [least, high - knob.step(high)]
    while high - low > 1:
        value = first.pop(0) if first else (low + high) // 2
        if not low < value < high:
            continue
        smaller = plan.derive(knob.set(best, value))
        if tries.meets(smaller):
            high = value
            yield smaller
        else:
            low = value


def _with_room(tries: Tries, plan: Plan, best: Setting) -> Setting:
    """Return the setting half a step above the smallest, if it meets the goal as well."""
    roomy = best
    for knob in memory_knobs(best):
        value = knob.value(best)
        roomy = knob.set(roomy, value + knob.step(value) // 2)
    roomy = plan.derive(roomy)
    within = all(
        mine <= most for mine, most in zip(roomy.accounted_mb, plan.start.accounted_mb, strict=True)
    )
    return roomy if within and tries.meets(roomy) else best


def unsteady(tries: Tries, knobs: Sequence[Knob]) -> list[str]:
    """Say where a larger limit was worse than a smaller one, all else being equal."""
    found = []
    for knob in knobs:
        by_rest: dict[tuple[int, ...], list[tuple[int, bool]]] = {}
        for setting, outcome in tries.done.items():
            rest = tuple(other.value(setting) for other in knobs if other != knob)
            meets = not misses(tries.goal, outcome)
            by_rest.setdefault(rest, []).append((knob.value(setting), meets))
        for values in by_rest.values():
            met = [value for value, meets in values if meets]
            worse = [value for value, meets in values if not meets and met and value > min(met)]
            if worse:
                found.append(
                    f"{knob.key} of the {knob.server}: {min(met)} met the goal and "
                    f"{min(worse)} did not; a larger limit is not always better here"
                )
    return found


# -- findings: each key with what binds it, and its neighbours ------------------------------------


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

    server: Role
    key: str
    value: str
    binds: str
    below: str
    above: str
    costs: str
    decides: bool = False


@dataclass(frozen=True)
class _Around:
    """Where findings look."""

    tries: Tries
    setting: Setting
    workload: Workload
    profile: str

    def at(self, knob: Knob, steps: int) -> tuple[str, list[str] | None]:
        """Return what happens some steps away, and what it misses; None: it was not tried."""
        value = knob.value(self.setting)
        value += steps * knob.step(value)
        try:
            outcome = self.tries.outcome(knob.set(self.setting, value))
        except OutOfTimeError:
            return f"{value}: not tried: no time was left", None
        return f"{value}: {told(self.tries.goal, outcome)}", misses(self.tries.goal, outcome)


def findings(
    tries: Tries, setting: Setting, workload: Workload, profile: str
) -> tuple[KeyFinding, ...]:
    """Return a finding for each key of each server, after trying the neighbours of limits."""
    around = _Around(tries, setting, workload, profile)
    return tuple(
        _finding(around, Knob(server, name))
        for server in setting.servers
        for name in KEYS
        # A Pulsar proxy has none of these.
        if not (server == "proxy" and profile == "pulsar" and KEYS[name] in FLOW_KEYS)
    )


def _finding(around: _Around, knob: Knob) -> KeyFinding:
    if knob.name in MEMORY:
        return _of_memory(around, knob)
    if knob.name.endswith("timeout_millis"):
        return _of_timeout(around, knob)
    return _of_queue(around, knob) if knob.name.endswith("queue") else _of_flow(around, knob)


def _of_memory(around: _Around, knob: Knob) -> KeyFinding:
    value, largest = knob.value(around.setting), around.workload.largest
    least_mb: int = getattr(least_limits(largest), knob.name)
    lower, is_heap = value - knob.step(value), knob.name == "heap_mb"
    if lower < least_mb:
        size = largest.charged_bytes if is_heap else largest.answer_bytes
        binds = (
            f"the largest answer: {largest.name}, {largest.topics:,} names, counts "
            f"{format_bytes(size)}, so {least_mb} MB at least"
        )
        below = f"{lower}: {largest.name} is never listed"
        decides = lower > 0
        below = below if decides else "0 would turn the limit off"
    else:
        below, missed = around.at(knob, -1)
        decides = bool(missed)
        binds = _bound_by(around, knob, missed)
    above, _ = around.at(knob, 1)
    kind = "heap" if is_heap else "direct memory"
    costs = f"up to {value} MB of {kind} for lists under way"
    return KeyFinding(knob.server, knob.key, str(value), binds, below, above, costs, decides)


def _bound_by(around: _Around, knob: Knob, missed: list[str] | None) -> str:
    if missed is None:
        return "the goal, as far as the time allowed to look"
    if missed:
        below = "; ".join(missed)
        return f"{_first_estimates(around, knob)}the goal: one step below {below}"
    tries, others = around.tries, set()
    for other in memory_knobs(around.setting):
        lower = other.below(around.setting)
        if other != knob and lower in tries.done and misses(tries.goal, tries.done[lower]):
            others.add(other.key)
    if others:
        return f"another key binds: {', '.join(sorted(others))}"
    return "nothing within a step: half a step of room is in it"


def _first_estimates(around: _Around, knob: Knob) -> str:
    """Say so where first requests would wait for each other with less heap."""
    if knob.name != "heap_mb" or around.setting.of(knob.server).pause:
        return ""
    needed = around.workload.first_estimates_bytes + around.workload.largest.charged_bytes
    value = knob.value(around.setting)
    if (value - knob.step(value)) * MB_BYTES >= needed:
        return ""
    return (
        f"first requests of {len(around.workload.listed):,} namespaces reserve 10,240 bytes each "
        f"and wait for the rest behind all others ({format_bytes(needed)}); "
    )


def _of_timeout(around: _Around, knob: Knob) -> KeyFinding:
    setting, workload = around.setting, around.workload
    value = knob.value(setting)
    total = sum(
        each.heap_timeout_millis + each.direct_timeout_millis
        for each in map(setting.of, setting.servers)
    )
    (below, missed), (above, _) = around.at(knob, -1), around.at(knob, 1)
    reading = workload.readers.seconds(workload.largest.answer_bytes)
    read = f", {format_seconds(reading)} of it for reading" if reading else ""
    binds = (
        f"clients give up after {workload.operation_timeout_seconds:g} s{read}: all waits of a "
        f"request together are {format_seconds(total / 1000)}"
    )
    costs = f"a refusal is told up to {format_seconds(value / 1000)} late"
    return KeyFinding(knob.server, knob.key, str(value), binds, below, above, costs, bool(missed))


def _of_queue(around: _Around, knob: Knob) -> KeyFinding:
    value, burst = knob.value(around.setting), around.workload.clients
    lower, upper = value - knob.step(value), value + knob.step(value)
    missed: list[str] | None = None
    if burst <= lower:
        below = f"{lower}: no change, at most {burst:,} wait"
        binds = f"nothing: {plural(burst, 'client')} wait at most, and this is as shipped"
    else:
        below, missed = around.at(knob, -1)
        binds = f"the burst: {plural(burst, 'client')} may all wait at once"
    if needed_queue(around.workload) < burst:
        binds = "the operator's own"
    above = f"{upper}: no change, nobody is refused for want of a place"
    costs = "about 1 kB for each request that waits"
    return KeyFinding(knob.server, knob.key, str(value), binds, below, above, costs, bool(missed))


_PULSARS_SWITCH = (
    "direct memory bounds what unread lists may hold; paused, a peer that does not read is spared "
    "by the keep-alive and holds it without end",
    "true: no change for clients that read; see the warning for those that do not",
    "-",
    "what is unread of messages and other answers has no bound for a connection",
)
_FLOODGATES_SWITCH = (
    "who does not read is asked for nothing more, and is closed while others wait for what it "
    "holds",
    "false: requests that a silent peer sends are read and answered without a bound",
    "-",
    "a peer that does not read waits for itself alone",
)


def _of_flow(around: _Around, knob: Knob) -> KeyFinding:
    value, pulsar = knob.value(around.setting), around.profile == "pulsar"
    if knob.name == "pause":
        said = _PULSARS_SWITCH if pulsar else _FLOODGATES_SWITCH
        return KeyFinding(knob.server, knob.key, str(bool(value)).lower(), *said)
    why = "the switch is off" if pulsar else "each client asks for one list at a time"
    costs = "none while nobody is paused" if "cooldown" in knob.name else "none"
    if knob.name == "high_water_mark":
        costs = "bytes that may wait for each connection before it counts as full"
    step = knob.step(value)
    away = (f"{value - step}: no change, {why}", f"{value + step}: no change, {why}")
    binds = "nothing of this load: as shipped"
    return KeyFinding(knob.server, knob.key, str(value), binds, *away, costs)
