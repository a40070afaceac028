"""Figures of a run, in total and by request class, and their bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

LEAST_CODES, LEAST_CLASS, LEAST_FIELDS, LEAST_ANSWERED = 0.995, 0.95, 0.97, 0.6
MOST_DROPPED, MOST_LISTED = 0.05, 0.01
LEAST_OF_A_CLASS = 30
JUDGED_FROM = 1_000
"""Fewest exchanges after which each class must have occurred often enough."""


class Added:
    """A dataclass of numbers and counters, which are added field by field."""

    def add(self, other: Self) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def missed(bounds: Iterable[tuple[str, float, float]]) -> list[str]:
    """Return a sentence for each share, named first, that is below its least."""
    return [
        f"{share:.2%} {what}, at least {least:.1%} must"
        for what, share, least in bounds
        if share < least
    ]


@dataclass
class Figures(Added):
    """Counts of a run, in exchanges, or in admin calls.

    Attributes:
        compared: Total, without dropped exchanges.
        dropped: The real server differed from itself.
        answered: Ended with an answer; for admin calls, with a success.
        same_codes: Every kind and code (or status) agrees.
        same_fields: Every field agrees.
        listed_codes: The first differing kind or code is in the list of deviations.
        patiently: Replayed with more time.
        fields: Compared fields.
        masked: Masked fields, by mask.
        listed: The first difference is in the list, by deviation.
        requests: By class.
        requests_listed: Requests that differ as listed.
        requests_alike: Other requests whose kinds and codes agree.
    """

    compared: int = 0
    dropped: int = 0
    answered: int = 0
    same_codes: int = 0
    same_fields: int = 0
    listed_codes: int = 0
    patiently: int = 0
    fields: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    requests_listed: Counter[str] = field(default_factory=Counter)
    requests_alike: Counter[str] = field(default_factory=Counter)

    def count_request(self, classes: Iterable[str], *, alike: bool, as_listed: bool) -> None:
        """Add a request to its classes."""
        for name in classes:
            self.requests[name] += 1
            self.requests_listed[name] += as_listed
            self.requests_alike[name] += alike and not as_listed

    def complaints(self, expected: Iterable[str] = ()) -> list[str]:
        """Return a sentence for each missed bound.

        Args:
            expected: Required classes, beside the observed classes.
        """
        whole = max(self.compared, 1)
        bounds = [
            ("agree in kinds and codes, or differ as listed", self._codes_or_listed, LEAST_CODES),
            ("do not differ as listed", 1 - self.listed_codes / whole, 1 - MOST_LISTED),
            ("agree in every field", self.same_fields / whole, LEAST_FIELDS),
            ("end with an answer", self.answered / whole, LEAST_ANSWERED),
            ("are kept", whole / (whole + self.dropped), 1 - MOST_DROPPED),
        ]
        found = missed(bounds)
        for name in sorted({*self.requests, *expected}):
            count = self.requests[name]
            if self._share(name) < LEAST_CLASS:
                found.append(f"{name}: {self._share(name):.1%} of {count} agree")
            if count < LEAST_OF_A_CLASS and self.compared >= JUDGED_FROM:
                found.append(f"{name} came {count} times only")
        return found

    @property
    def _codes_or_listed(self) -> float:
        return (self.same_codes + self.listed_codes) / max(self.compared, 1)

    def _share(self, name: str) -> float:
        """Return the agreeing share of a class, without listed differences."""
        others = self.requests[name] - self.requests_listed[name]
        return self.requests_alike[name] / others if others else 1.0

    def summary(self) -> str:
        """Return the totals in a line."""
        whole = max(self.compared, 1)
        return (
            f"{self.compared} compared, {self.dropped} dropped; "
            f"{self.answered / whole:.1%} end with an answer; "
            f"{self.same_codes / whole:.2%} agree in kinds and codes, "
            f"{self.listed_codes / whole:.2%} differ as listed, "
            f"{1 - self._codes_or_listed:.2%} otherwise; "
            f"{self.same_fields / whole:.2%} agree in every field; "
            f"{self.patiently} played again with more time"
        )

    def lines(self) -> Iterator[str]:
        """Yield masks, listed differences, and every class, worst first."""
        yield f"of {self.fields} fields masked: " + _named(self.masked)
        yield "as listed: " + _named(self.listed)
        yield "requests  listed  others that agree  class"
        for name in sorted(self.requests, key=lambda one: (self._share(one), one)):
            listed = self.requests_listed[name]
            yield f"{self.requests[name]:8}  {listed:6}  {self._share(name):17.2%}  {name}"


def _named(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
