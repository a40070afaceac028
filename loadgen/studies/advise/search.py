"""The search: the smallest limits that meet a goal, as a loop over storms.

It knows nothing of servers: it asks a function for the outcome of a setting. A larger limit is
taken to be no worse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from loadgen.studies.advise.limits import memory_knobs, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.studies.advise.bounds import Least
    from loadgen.studies.advise.goal import Goal, Outcome
    from loadgen.studies.advise.limits import Knob, Setting

_ROUNDS = 3


class OutOfTimeError(Exception):
    """The time for storms is over: the one that was under way is cut."""


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


@dataclass
class Tries:
    """The storms of a search; each setting is tried once.

    Args:
        storm: Returns the outcome of a setting, or raises ``OutOfTimeError``.
        goal: What it is judged by.
        on_try: Told of each storm when it is over, with its number.
        derive: Returns a setting with all that follows from its limits.
    """

    storm: Callable[[Setting], Outcome]
    goal: Goal
    on_try: Callable[[int, Outcome], None] = lambda _number, _outcome: None
    derive: Callable[[Setting], Setting] = lambda setting: setting
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

    def climb(self, setting: Setting, most: Setting) -> Setting:
        """Return limits that meet the goal: these, or a few times their double, or the most."""
        for _ in range(_ROUNDS):
            if not self.misses(setting):
                return setting
            for knob in memory_knobs(setting):
                setting = knob.set(setting, min(2 * knob.value(setting), knob.value(most)))
            setting = self.derive(setting)
        return most

    def search(self, start: Setting, most: Setting, least: Least) -> Found:
        """Bisect key after key until none can be smaller, then go half a step up.

        When time runs out, what was found by then is the answer.

        Args:
            start: Where the answer is thought to be.
            most: Meets the goal.
            least: Nothing below it is tried.
        """
        best = most
        try:
            best = self.climb(start, most)
            for _ in range(_ROUNDS):
                before = best
                for knob in memory_knobs(best):
                    for smaller in self._smaller(best, knob, getattr(least, knob.name)):
                        best = smaller
                if best == before:
                    break
            return Found(self._with_room(best), best, complete=True)
        except OutOfTimeError:
            return Found(best, best, complete=False)

    def _smaller(self, best: Setting, knob: Knob, least: int) -> Iterator[Setting]:
        """Yield ever smaller values of one key that meet the goal, down to the smallest."""
        low, high = least - 1, knob.value(best)
        # Most keys end at their least value or one step under where they are.
        first = [least, high - step(high)]
        while high - low > 1:
            value = first.pop(0) if first else (low + high) // 2
            if not low < value < high:
                continue
            smaller = self.derive(knob.set(best, value))
            if self.misses(smaller):
                low = value
            else:
                high = value
                yield smaller

    def _with_room(self, best: Setting) -> Setting:
        """Return the setting half a step above the smallest, if it meets the goal as well."""
        roomy = best
        for knob in memory_knobs(best):
            value = knob.value(best)
            roomy = knob.set(roomy, value + step(value) // 2)
        roomy = self.derive(roomy)
        most_mb = max(roomy.of(each).accounted_mb for each in roomy.servers)
        return best if most_mb > self.goal.accounted_mb or self.misses(roomy) else roomy
