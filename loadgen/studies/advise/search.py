"""The search for the smallest limits that meet a goal, also under harder loads.

Limits that only just pass a simulation are not advised: a namespace grows, a deploy adds clients,
and a cold or busy broker takes longer than any stated time. These harder loads are the strains.

The search itself does not use servers: a function returns the outcome of limits under a question.
More memory is not assumed to be better: outcomes are not monotone near the edge, and the advised
limits keep away from the edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from loadgen.studies.advise.limits import capped, memory_knobs, raised, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loadgen.studies.advise.goal import Goal, Outcome
    from loadgen.studies.advise.limits import Setting
    from loadgen.studies.advise.question import Question

    Storm = Callable[[Question, Setting], Outcome]
    OnTry = Callable[[int, Question, Setting, Outcome], None]

STEP = 1.5
"""Factor between the memory of failing limits and that of the next try."""
_STEPS, _EDGE_STEPS = 16, 6
GROWTH, MORE_CLIENTS, SLOWER = 1.5, 1.25, 3.0
"""Errors in a stated load to allow for: larger namespace, more clients, slower servers."""
_FURTHER = (1.5, 2.0, 3.0, 5.0)
"""Factors by which a load is made harder, to find where the advised limits fail."""


def strains(question: Question) -> tuple[Question, ...]:
    """Return the stated load, and the harder loads that advised limits have to withstand.

    The first two are the question itself, with its own broker and with a slower one.
    """
    grown = larger(more_clients(question, MORE_CLIENTS), GROWTH)
    return (
        question,
        slower(question, question.times.band),
        grown,
        reseeded(slower(question, SLOWER), 1),
        reseeded(slower(question, 1 / SLOWER), 2),
    )


def slow_brokers(strains: Sequence[Question]) -> tuple[Question, ...]:
    """Return those of a question's strains that sure limits have to bear: two seeds of one kind."""
    return strains[1], strains[3]


def directions(question: Question) -> list[list[Question]]:
    """Return three series of ever harder loads: more clients, larger namespaces, slower servers."""
    kinds = (more_clients, larger, slower)
    return [[harder(question, factor) for factor in _FURTHER] for harder in kinds]


def more_clients(question: Question, factor: float) -> Question:
    """Return a load in which each group has ``factor`` times as many clients."""
    groups = (
        each.model_copy(update={"count": math.ceil(factor * each.count)})
        for each in question.groups
    )
    return _strained(question, f"{factor:g}x clients", groups=tuple(groups))


def larger(question: Question, factor: float) -> Question:
    """Return a load in which the largest namespace has ``factor`` times as many names."""
    largest = question.largest
    grown = replace(
        largest,
        topics=math.ceil(factor * largest.topics),
        name_bytes=math.ceil(factor * largest.name_bytes),
    )
    namespaces = tuple(grown if each is largest else each for each in question.namespaces)
    return _strained(question, f"{factor:g}x largest namespace", namespaces=namespaces)


def slower(question: Question, factor: float) -> Question:
    """Return a load whose servers are slower by ``factor``."""
    how = f"{factor:g}x as slow" if factor >= 1 else f"{1 / factor:g}x as fast"
    return _strained(question, f"a broker {how}", times=question.times.scaled(factor))


def _strained(question: Question, name: str, **said: Any) -> Question:  # noqa: ANN401
    return replace(question, strain=", ".join(filter(None, (question.strain, name))), **said)


def reseeded(question: Question, further: int) -> Question:
    """Return a load whose random choices have another seed."""
    return replace(question, seed=question.seed + further)


# -- the search -----------------------------------------------------------------------------------


class OutOfTimeError(Exception):
    """The search's time is over, so the simulated storm in progress was cut."""


@dataclass
class Tries:
    """The restart storms of a search, of which each pair of load and limits is run only once.

    Args:
        storm: Returns the outcome of limits under a load, or raises ``OutOfTimeError``.
        goal: The goal that all limits have to meet.
        on_try: Called after each storm with its number, question, setting and outcome.
    """

    storm: Storm
    goal: Goal
    on_try: OnTry = lambda *_: None
    done: dict[tuple[Question, Setting], Outcome] = field(default_factory=dict)

    def outcome(self, question: Question, setting: Setting) -> Outcome:
        """Return the outcome of the storm of a load with given limits, running it if necessary.

        Raises:
            OutOfTimeError: This storm has not been run yet, and the time is over.
        """
        if (question, setting) not in self.done:
            found = self.done[question, setting] = self.storm(question, setting)
            self.on_try(len(self.done), question, setting, found)
        return self.done[question, setting]

    def misses(self, question: Question, setting: Setting) -> list[str]:
        """Return words on how limits miss the goal under a load; empty if they meet it."""
        return self.goal.misses(self.outcome(question, setting))

    def meets(self, loads: Iterable[Question], setting: Setting) -> bool:
        """Return True if limits meet the goal under each of some loads."""
        return not any(self.misses(each, setting) for each in loads)

    def known_miss(self, question: Question, setting: Setting) -> bool:
        """Return True if limits were already run under a load, and missed the goal."""
        outcome = self.done.get((question, setting))
        return outcome is not None and bool(self.goal.misses(outcome))

    def bears(self, strain: Question, setting: Setting, most: Setting) -> bool:
        """Return True if limits meet the goal under a load, or do as well as ``most`` does."""
        outcome = self.outcome(strain, setting)
        if not self.goal.misses(outcome):
            return True
        largest = self.outcome(strain, most)
        return bool(self.goal.misses(largest)) and outcome.as_good_as(largest)

    def climb(self, start: Setting, most: Setting, strains: Sequence[Question]) -> Setting:
        """Raise limits, step by step, until they meet the goal under all given loads.

        If none do, return the largest limits that meet the goal under the most of these loads, in
        order; ``start`` or ``most`` where raising one limit took memory from the other.
        """

        def all_borne(setting: Setting) -> bool:
            return all(self.bears(each, setting, most) for each in strains)

        steps = list(self._steps(start, most))
        found = next(filter(all_borne, steps), None)
        found = found or max((steps[-1], start, most), key=lambda each: self._met(strains, each))
        for server in found.servers:  # Only one of the servers may have had too small limits.
            smaller = found.with_server(server, start)
            if smaller != found and all_borne(smaller):
                found = smaller
        for knob in memory_knobs(found):  # A single limit may have been too small.
            smaller = knob.set(found, min(knob.value(found), knob.value(start)))
            if smaller != found and all_borne(smaller):
                found = smaller
        return found

    def _met(self, strains: Sequence[Question], setting: Setting) -> int:
        """Return how many loads limits meet the goal under, before the first that they miss."""
        return sum(1 for _ in takewhile(lambda each: not self.misses(each, setting), strains))

    def edge(
        self, strains: Sequence[Question], passing: Setting, least: Setting, most: Setting
    ) -> Setting:
        """Search for the smallest limits that meet the goal, all reduced in the same proportion.

        Args:
            strains: The loads under which the limits have to meet the goal.
            passing: Limits that meet the goal under these loads.
            least: The smallest limits to try.
            most: The largest limits, which :meth:`bears` compares with.
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
        """Yield ever larger limits, up to those of ``most``.

        If one of the first limits is larger already, the others get the rest of the memory.
        """
        setting, fits = start, capped(start, most) == start
        for _ in range(_STEPS):
            yield setting
            larger = capped(scaled(setting, STEP, setting), most)
            larger = larger if fits else raised(setting, STEP, most.broker.accounted_mb)
            if larger == setting:
                return
            setting = larger
