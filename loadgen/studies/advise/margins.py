"""The strains that advised limits must bear beside what was asked: growth, haste, slow processors.

Limits that only just pass a simulation are no advice: a namespace grows, a deploy adds clients, and
a cold broker, or a busy one, takes longer than any stated time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loadgen.studies.advise.question import Question

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


def directions(question: Question) -> dict[str, list[Strain]]:
    """Return ever harder questions of one kind each: more clients, growth, slow processors."""
    kinds = {
        "clients": more_clients,
        "names in the largest namespace": larger,
        "time that a broker takes": slower,
    }
    return {
        kind: [
            Strain(f"{factor:g} times the {kind}", harder(question, factor)) for factor in _FURTHER
        ]
        for kind, harder in kinds.items()
    }


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
