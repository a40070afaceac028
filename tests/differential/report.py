"""What a run found: figures by class, the bounds that they are held to, and what differs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.golden import Silence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.differential.deviations import Deviation
    from tests.differential.run import Outcome

LEAST_CODES, LEAST_CLASS, LEAST_FIELDS, LEAST_ANSWERED = 0.995, 0.95, 0.97, 0.6
MOST_DROPPED, MOST_LISTED = 0.05, 0.01
LEAST_OF_A_CLASS = 30
JUDGED_FROM = 1_000
"""Exchanges from which on a class must have come often enough."""


@dataclass
class ClassFigures:
    """One command and mode."""

    requests: int = 0
    same_codes: int = 0
    same_fields: int = 0
    fields: int = 0
    masked: int = 0


@dataclass
class Figures:
    """What a run found.

    Attributes:
        exchanges: Conversations that were compared.
        dropped: Those in which the real server differed from itself.
        answered: Those that ended with an answer.
        same_codes: Those in which every kind and code agrees.
        same_fields: Those in which every field agrees.
        listed_codes: Those whose kinds or codes differ first where the list of deviations says so.
        listed: Those that differ first where the list says so, by its names.
        patiently: Those that were played again with more time.
        classes: By class of request.
    """

    exchanges: int = 0
    dropped: int = 0
    answered: int = 0
    same_codes: int = 0
    same_fields: int = 0
    listed_codes: int = 0
    patiently: int = 0
    listed: Counter[str] = field(default_factory=Counter)
    classes: dict[str, ClassFigures] = field(default_factory=dict)

    def count(self, outcome: Outcome, deviations: Iterable[Deviation]) -> None:
        """Add one case."""
        self.patiently += outcome.patiently
        if outcome.dropped:
            self.dropped += 1
            return
        self.exchanges += 1
        self.answered += not isinstance(outcome.real.last, Silence)
        self.same_codes += outcome.same_codes
        self.same_fields += outcome.same_fields
        if (known := listed(outcome, deviations)) is not None:
            self.listed[known.name] += 1
            self.listed_codes += not outcome.same_codes
        for step in outcome.steps:
            one = self.classes.setdefault(class_of(step.kind), ClassFigures())
            one.requests += 1
            one.same_codes += step.same_codes
            one.same_fields += step.same_codes and not step.found
            one.fields += step.fields
            one.masked += step.masked

    def complaints(self) -> list[str]:
        """Return the bounds that are not kept, a sentence each."""
        whole, listed_share = max(self.exchanges, 1), self.listed_codes / max(self.exchanges, 1)
        bounds = [
            ("agree in kinds and codes, or differ as listed", self._codes_or_listed, LEAST_CODES),
            ("do not differ as listed", 1 - listed_share, 1 - MOST_LISTED),
            ("agree in every field", self.same_fields / whole, LEAST_FIELDS),
            ("end with an answer", self.answered / whole, LEAST_ANSWERED),
            ("are kept", whole / (whole + self.dropped), 1 - MOST_DROPPED),
        ]
        found = [
            f"{share:.2%} of the exchanges {what}, at least {least:.1%} must"
            for what, share, least in bounds
            if share < least
        ]
        for name, one in sorted(self.classes.items()):
            if one.same_codes / one.requests < LEAST_CLASS:
                found.append(f"{name}: {one.same_codes} of {one.requests} agree in kinds and codes")
            if one.requests < LEAST_OF_A_CLASS and self.exchanges >= JUDGED_FROM:
                found.append(f"{name} came {one.requests} times only")
        return found

    @property
    def _codes_or_listed(self) -> float:
        return (self.same_codes + self.listed_codes) / max(self.exchanges, 1)

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        whole = max(self.exchanges, 1)
        requests = sum(one.requests for one in self.classes.values())
        yield (
            f"{self.exchanges} exchanges of {requests} requests, {self.dropped} dropped; "
            f"{self.answered / whole:.1%} end with an answer; "
            f"{self.same_codes / whole:.2%} agree in kinds and codes, "
            f"{self.listed_codes / whole:.2%} differ as listed, "
            f"{1 - self._codes_or_listed:.2%} otherwise; "
            f"{self.same_fields / whole:.2%} agree in every field; "
            f"{self.patiently} played again with more time"
        )
        yield f"{'class':30} requests  codes %  fields %  masked %"
        for name, one in sorted(self.classes.items()):
            yield (
                f"{name:30} {one.requests:8} {one.same_codes / one.requests:8.2%} "
                f"{one.same_fields / one.requests:9.2%} {one.masked / max(one.fields, 1):9.2%}"
            )
        for name, count in self.listed.most_common():
            yield f"  differs as listed, {count}: {name}"


def class_of(kind: str) -> str:
    """Return under which name a kind of step is judged: raw frames together."""
    return "raw frame" if kind.startswith("raw") else kind


def listed(outcome: Outcome, deviations: Iterable[Deviation]) -> Deviation | None:
    """Return the deviation that covers the first difference of a case; None if none does."""
    if outcome.same_fields:
        return None
    differing = [
        taken
        for taken, step in zip(outcome.case.steps, outcome.steps, strict=False)
        if step.found or not step.same_codes
    ]
    if not differing:
        return None
    return next((one for one in deviations if one.covers(differing[0])), None)


def difference_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a case up to where it differs, and how."""
    yield f"{outcome.case.name}:"
    for taken, step in zip(outcome.case.steps, outcome.steps, strict=False):
        yield f"  {step.kind}: {str(taken)[:400]}"
        if step.found:
            for one in step.found:
                yield f"      {one.field}: real {one.recorded[:200]} | ours {one.answered[:200]}"
            return
