"""The search: the smallest limits that meet a goal, as a loop over storms.

It knows nothing of servers: it asks a function for the outcome of a setting. A larger limit is
taken to be no worse; where an outcome says otherwise, it is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from loadgen.studies.advise.limits import memory_knobs, step
from loadgen.studies.advise.sentences import said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.studies.advise.bounds import Least
    from loadgen.studies.advise.goal import Goal, Outcome
    from loadgen.studies.advise.limits import Knob, Setting

_ROUNDS = 3


class OutOfTimeError(Exception):
    """The time for storms is over: the one that was under way is cut."""


@dataclass
class Tries:
    """The storms of a search; each setting is tried once.

    Args:
        storm: Returns the outcome of a setting, or raises ``OutOfTimeError``.
        goal: What it is judged by.
        on_try: Told of each storm when it is over, with its number.
    """

    storm: Callable[[Setting], Outcome]
    goal: Goal
    on_try: Callable[[int, Outcome], None] = lambda _number, _outcome: None
    done: dict[Setting, Outcome] = field(default_factory=dict)

    def outcome(self, setting: Setting) -> Outcome:
        """Return the outcome of a setting.

        Raises:
            OutOfTimeError: It was not tried yet, and there is no time for it.
        """
        if setting not in self.done:
            self.done[setting] = self.storm(setting)
            self.on_try(len(self.done), self.done[setting])
        return self.done[setting]

    def misses(self, setting: Setting) -> list[str]:
        """Say where a setting falls short of the goal; empty: it meets it."""
        return self.goal.misses(self.outcome(setting))

    def unsteady(self, knobs: list[Knob]) -> Iterator[str]:
        """Say where a larger limit was worse than a smaller one, all else being equal."""
        for knob in knobs:
            by_rest: dict[tuple[int, ...], dict[int, bool]] = {}
            for setting in self.done:
                rest = tuple(other.value(setting) for other in knobs if other != knob)
                met = not self.misses(setting)
                by_rest.setdefault(rest, {})[knob.value(setting)] = met
            for values in by_rest.values():
                least = min((value for value, met in values.items() if met), default=0)
                worse = [value for value, met in values.items() if not met and value > least > 0]
                if worse:
                    yield said("unsteady", knob=knob, met=least, missed=min(worse))


class Plan(NamedTuple):
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
    best = plan.start
    try:
        best = _tried_guess(tries, plan)
        for _ in range(_ROUNDS):
            before = best
            for knob in memory_knobs(best):
                for smaller in _smaller(tries, plan, best, knob):
                    best = smaller
            if best == before:
                break
        return Found(_with_room(tries, plan, best), best, complete=True)
    except OutOfTimeError:
        return Found(best, best, complete=False)


def _tried_guess(tries: Tries, plan: Plan) -> Setting:
    """Begin at the guess, or at a few steps above it, if that meets the goal already."""
    setting = plan.derive(plan.guess)
    for _ in range(_ROUNDS):
        if not tries.misses(setting):
            return setting
        for knob in memory_knobs(setting):
            larger = min(2 * knob.value(setting), knob.value(plan.start))
            setting = knob.set(setting, larger)
        setting = plan.derive(setting)
    return plan.start


def _smaller(tries: Tries, plan: Plan, best: Setting, knob: Knob) -> Iterator[Setting]:
    """Yield ever smaller values of one key that meet the goal, down to the smallest."""
    least: int = getattr(plan.least, knob.name)
    low, high = least - 1, knob.value(best)
    # Most keys end at their least value or one step under where they are.
    first = [least, high - step(high)]
    while high - low > 1:
        value = first.pop(0) if first else (low + high) // 2
        if not low < value < high:
            continue
        smaller = plan.derive(knob.set(best, value))
        if tries.misses(smaller):
            low = value
        else:
            high = value
            yield smaller


def _with_room(tries: Tries, plan: Plan, best: Setting) -> Setting:
    """Return the setting half a step above the smallest, if it meets the goal as well."""
    roomy = best
    for knob in memory_knobs(best):
        value = knob.value(best)
        roomy = knob.set(roomy, value + step(value) // 2)
    roomy = plan.derive(roomy)
    within = all(
        roomy.of(each).accounted_mb <= plan.start.of(each).accounted_mb for each in best.servers
    )
    return roomy if within and not tries.misses(roomy) else best
