"""The search: limits that hold under every strain, and the edge where they just pass as asked.

Limits that only just pass a simulation are no advice: a namespace grows, a deploy adds clients, and
a cold broker, or a busy one, takes longer than any stated time. These are the strains.

The search knows nothing of servers: it asks a function for the outcome of a setting under a
question. More memory is not taken to be better: outcomes are not monotone near the edge, which is
why the answer keeps away from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from loadgen.studies.advise.limits import capped, memory_knobs, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.studies.advise.goal import Goal, Outcome
    from loadgen.studies.advise.limits import Setting
    from loadgen.studies.advise.question import Question

    Storm = Callable[[Question, Setting], Outcome]

STEP = 1.5
"""Limits that do not hold are tried with so many times the memory."""
_STEPS, _EDGE_STEPS = 16, 6
GROWTH, MORE_CLIENTS, SLOWER = 1.5, 1.25, 3.0
"""By how much the largest namespace, the clients and a server's times may be off."""
BAND = 1.5
"""Recorded brokers were so many times as slow, or fast, as the stated times: cold, busy, warm."""
_FURTHER = (1.5, 2.0, 3.0, 5.0)
"""So much of one of these alone is tried to say where the advice ends."""


class Strain(NamedTuple):
    """A question that is harder than the one that was asked.

    Attributes:
        name: What is different, in a few words.
    """

    name: str
    question: Question


def strains(question: Question) -> tuple[Strain, ...]:
    """Return what limits are tried with: as asked, then what is likely to break them.

    The first two are what was asked, at both ends of what brokers take.
    """
    grown = larger(more_clients(question, MORE_CLIENTS), GROWTH)
    return (
        Strain("as asked", question),
        Strain("a broker half as slow again", slower(question, BAND)),
        Strain("a quarter more clients, the largest namespace half as large again", grown),
        Strain("a broker three times as slow", reseeded(slower(question, SLOWER), 1)),
        Strain("a broker three times as fast", reseeded(slower(question, 1 / SLOWER), 2)),
    )


def directions(question: Question) -> list[list[Strain]]:
    """Return ever harder questions of one kind each: more clients, growth, slow processors."""
    kinds = {
        "clients": more_clients,
        "names in the largest namespace": larger,
        "time that a broker takes": slower,
    }
    return [
        [Strain(f"{factor:g} times the {kind}", harder(question, factor)) for factor in _FURTHER]
        for kind, harder in kinds.items()
    ]


def more_clients(question: Question, factor: float) -> Question:
    """Return a question with so many times the clients of each group."""
    groups = (
        each.model_copy(update={"count": math.ceil(factor * each.count)})
        for each in question.groups
    )
    return replace(question, groups=tuple(groups))


def larger(question: Question, factor: float) -> Question:
    """Return a question whose largest namespace has so many times the names."""
    largest = question.largest
    grown = replace(
        largest,
        topics=math.ceil(factor * largest.topics),
        name_bytes=math.ceil(factor * largest.name_bytes),
    )
    namespaces = tuple(grown if each is largest else each for each in question.namespaces)
    return replace(question, namespaces=namespaces)


def slower(question: Question, factor: float) -> Question:
    """Return a question to servers whose work takes so many times as long."""
    return replace(question, times=question.times.scaled(factor))


def reseeded(question: Question, further: int) -> Question:
    """Return a question with other chances."""
    return replace(question, seed=question.seed + further)


# -- the search -----------------------------------------------------------------------------------


class OutOfTimeError(Exception):
    """The time for storms is over: the one that was under way is cut."""


@dataclass
class Tries:
    """The storms of a search; each setting is tried once under a question.

    Args:
        storm: Returns the outcome of a setting, or raises ``OutOfTimeError``.
        goal: What it is judged by.
        on_try: Told of each storm when it is over, with its number.
    """

    storm: Storm
    goal: Goal
    on_try: Callable[[int, Outcome], None] = lambda _number, _outcome: None
    done: dict[tuple[Question, Setting], Outcome] = field(default_factory=dict)

    def outcome(self, question: Question, setting: Setting) -> Outcome:
        """Return the outcome of a setting.

        Raises:
            OutOfTimeError: It was not tried yet, and there is no time for it.
        """
        if (question, setting) not in self.done:
            found = self.done[question, setting] = self.storm(question, setting)
            self.on_try(len(self.done), found)
        return self.done[question, setting]

    def misses(self, question: Question, setting: Setting) -> list[str]:
        """Say where a setting falls short of the goal; empty: it meets it."""
        return self.goal.misses(self.outcome(question, setting))

    def bears(self, strain: Strain, setting: Setting, most: Setting) -> bool:
        """Say if a setting meets the goal under a strain, or does as well as all memory would."""
        outcome = self.outcome(strain.question, setting)
        if not self.goal.misses(outcome):
            return True
        largest = self.outcome(strain.question, most)
        return bool(self.goal.misses(largest)) and outcome.as_good_as(largest)

    def climb(self, start: Setting, most: Setting, strains: Sequence[Strain]) -> Setting:
        """Return limits that bear all strains: these, or larger ones in steps, or the most."""

        def all_borne(setting: Setting) -> bool:
            return all(self.bears(each, setting, most) for each in strains)

        found = next(filter(all_borne, self._steps(start, most)), most)
        for knob in memory_knobs(found):  # It may have been one of them that was too small.
            smaller = knob.set(found, min(knob.value(found), knob.value(start)))
            if smaller != found and all_borne(smaller):
                found = smaller
        return found

    def edge(
        self, strains: Sequence[Strain], passing: Setting, least: Setting, most: Setting
    ) -> Setting:
        """Return the smallest limits found that bear strains, in the proportions of those given.

        Args:
            strains: What they are to bear, no more.
            passing: They bear it.
            least: Nothing below is tried.
            most: See ``bears``.
        """
        low, high, best = 0.0, 1.0, passing
        for _ in range(_EDGE_STEPS):
            factor = (low + high) / 2
            tried = scaled(passing, factor, least)
            if tried == best:
                break
            if all(self.bears(each, tried, most) for each in strains):
                high, best = factor, tried
            else:
                low = factor
        return best

    @staticmethod
    def _steps(start: Setting, most: Setting) -> Iterator[Setting]:
        """Yield ever larger limits, none above the most."""
        setting = start
        for _ in range(_STEPS):
            yield setting
            larger = capped(scaled(setting, STEP, setting), most)
            if larger == setting:
                return
            setting = larger
