"""The search: the smallest limits that meet a goal, by bisecting one key after the other.

It knows nothing of servers: it asks a function for the outcome of a setting. A larger limit is
taken to be no worse; where an outcome says otherwise, it is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadgen.advice.goal import Goal, Outcome, misses
from loadgen.advice.limits import MEMORY, Knob, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.advice.bounds import Least

_ROUNDS = 3


class OutOfTimeError(Exception):
    """The time for tries is over: an engine has cut one."""


@dataclass
class Tries:
    """The tries of a search; each setting is tried once.

    Args:
        engine: Returns the outcome of a setting, or raises ``OutOfTimeError``.
        goal: What it is judged by.
        on_try: Told of each try when it is over.
    """

    engine: Callable[[Setting], Outcome]
    goal: Goal
    on_try: Callable[[Setting, Outcome], None] = lambda _setting, _outcome: None
    done: dict[Setting, Outcome] = field(default_factory=dict)

    def outcome(self, setting: Setting) -> Outcome:
        """Return the outcome of a setting.

        Raises:
            OutOfTimeError: It was not tried yet, and there is no time for it.
        """
        if setting not in self.done:
            self.done[setting] = self.engine(setting)
            self.on_try(setting, self.done[setting])
        return self.done[setting]

    def meets(self, setting: Setting) -> bool:
        """Tell whether a setting meets the goal."""
        return not misses(self.goal, self.outcome(setting))


@dataclass(frozen=True)
class Found:
    """The end of a search.

    Attributes:
        setting: The one that is advised.
        smallest: The smallest limits that met the goal, in MB: the advised ones are half a step
            larger, so that they stand in the middle between what meets it and what does not.
        complete: False if the time was over before every key was at its smallest.
    """

    setting: Setting
    smallest: Setting
    complete: bool


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


def memory_knobs(setting: Setting) -> list[Knob]:
    """Return the keys that are searched: the limits of each server, in the order of what binds."""
    return [Knob(server, name) for server in setting.servers for name in MEMORY]


def search(tries: Tries, plan: Plan) -> Found:
    """Bisect key after key until none can be smaller, then go half a step up.

    When time runs out, what was found by then is the answer.
    """
    best = plan.start
    knobs = memory_knobs(best)
    try:
        best = _tried_guess(tries, plan, best)
        for _ in range(_ROUNDS):
            before = best
            for knob in knobs:
                best = _smallest(tries, plan, best, knob)
            if best == before:
                break
        return Found(_with_room(tries, plan, best, knobs), best, complete=True)
    except _EndedError as ended:
        return Found(ended.best, ended.best, complete=False)


class _EndedError(Exception):
    def __init__(self, best: Setting) -> None:
        super().__init__()
        self.best = best


def _tried_guess(tries: Tries, plan: Plan, best: Setting) -> Setting:
    """Begin at the guess, or at a few steps above it, if that meets the goal already."""
    setting = plan.derive(plan.guess)
    for _ in range(_ROUNDS):
        if _meets(tries, setting, best):
            return setting
        for knob in memory_knobs(setting):
            larger = min(2 * knob.value(setting), knob.value(plan.start))
            setting = knob.set(setting, larger)
        setting = plan.derive(setting)
    return best


def _smallest(tries: Tries, plan: Plan, best: Setting, knob: Knob) -> Setting:
    """Return the best setting with the smallest value of one key that meets the goal."""
    least = plan.least.of(knob.name)
    low, high = least - 1, knob.value(best)
    # Most keys end at their least value or one step under where they are.
    first = [least, high - knob.step(high)]
    while high - low > 1:
        value = first.pop(0) if first else (low + high) // 2
        if not low < value < high:
            continue
        smaller = plan.derive(knob.set(best, value))
        if _meets(tries, smaller, best):
            high, best = value, smaller
        else:
            low = value
    return best


def _with_room(tries: Tries, plan: Plan, best: Setting, knobs: Sequence[Knob]) -> Setting:
    """Return the setting half a step above the smallest, if it meets the goal as well."""
    roomy = best
    for knob in knobs:
        value = knob.value(best)
        roomy = knob.set(roomy, value + knob.step(value) // 2)
    roomy = plan.derive(roomy)
    within = all(
        roomy.of(server).accounted_bytes <= plan.start.of(server).accounted_bytes
        for server in roomy.servers
    )
    return roomy if within and _meets(tries, roomy, best) else best


def _meets(tries: Tries, setting: Setting, best: Setting) -> bool:
    try:
        return tries.meets(setting)
    except OutOfTimeError:
        raise _EndedError(best) from None


def unsteady(tries: Tries, knobs: Sequence[Knob]) -> list[str]:
    """Say where a larger limit was worse than a smaller one, all else being equal."""
    found = []
    for knob in knobs:
        by_rest: dict[tuple[int, ...], list[tuple[int, bool]]] = {}
        for setting, outcome in tries.done.items():
            rest = tuple(other.value(setting) for other in knobs if other != knob)
            by_rest.setdefault(rest, []).append(
                (knob.value(setting), not misses(tries.goal, outcome))
            )
        for values in by_rest.values():
            met = [value for value, meets in values if meets]
            worse = [value for value, meets in values if not meets and met and value > min(met)]
            if worse:
                found.append(
                    f"{knob.key} of the {knob.server}: {min(met)} met the goal and "
                    f"{min(worse)} did not; a larger limit is not always better here"
                )
    return found
