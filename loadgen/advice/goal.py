"""The goal of an advice, the outcome of one try, and the sentences that say where it fell short."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.units import MB_BYTES, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
_MEGABYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b)?", re.IGNORECASE)
_MEGABYTES_EACH = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}
_MOST_MEGABYTES = 1 << 20
_LEAST_REFUSED, _MOST_REFUSED = 1e-6, 0.99
LONGEST_SECONDS = 86_400.0
_SECONDS_EACH = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Goal:
    """The goal that limits are to meet.

    Attributes:
        back_within_seconds: All are back by then, but for the share that may be refused.
        refused_share: The most of all requests that may be refused or not answered in time.
        accounted_mb: The most that each server's limiter may hold, heap and direct together; one
            MB is 1,048,576 bytes, as in Pulsar's keys.
    """

    back_within_seconds: float = 60.0
    refused_share: float = 0.001
    accounted_mb: int = 512

    def __str__(self) -> str:
        return (
            f"all clients recovered within {self.back_within_seconds:g} s, at most "
            f"{100 * self.refused_share:g} % refused, at most {self.accounted_mb:,} MB in each "
            "limiter"
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of one try.

    Attributes:
        clients: In all.
        back: Clients that were back by the end of the goal's time.
        slowest_seconds: When the last of them was back; None: nobody was.
        requests: Lists and watches asked for.
        refused: Those refused, timed out, lost or wrong.
        accounted: The most that each server's limiter held, in bytes: heap and direct.
        reasons: Texts of refusals, and how many had each.
    """

    clients: int
    back: int
    slowest_seconds: float | None
    requests: int
    refused: int
    accounted: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused_share(self) -> float:
        """Share of requests that were refused."""
        return self.refused / self.requests if self.requests else 0.0

    def __str__(self) -> str:
        told = f"{self.back:,} of {self.clients:,} recovered"
        if self.slowest_seconds is not None:
            told += f", the last after {format_seconds(self.slowest_seconds)}"
        return f"{told}; {percent(self.refused_share)} refused"


def misses(goal: Goal, outcome: Outcome) -> list[str]:
    """Say where an outcome falls short of a goal; empty: it meets it."""
    found = []
    late = outcome.clients - outcome.back
    if late > _allowed(outcome.clients, goal):
        found.append(
            f"{late:,} of {outcome.clients:,} not recovered within {goal.back_within_seconds:g} s"
        )
    if outcome.refused > _allowed(outcome.requests, goal):
        found.append(f"{percent(outcome.refused_share)} refused")
    for server, held in outcome.accounted.items():
        if held > goal.accounted_mb * MB_BYTES:
            found.append(f"the {server}'s limiter held {format_bytes(held)}")
    return found


def _allowed(count: int, goal: Goal) -> float:
    """Return how many of so many may be refused; a share as a float is not exact."""
    return count * goal.refused_share + 1e-6


def percent(share: float) -> str:
    """Write a share with the digits that matter."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def parse_seconds(option: str, text: str, least: float = 0.001) -> float:
    """Return the seconds of ``60s``, ``2m``, ``500ms`` or a plain number.

    Raises:
        UsageError: The text is none of these, or less than the least.
    """
    found = _SECONDS.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS_EACH[found[2] or "s"] if found else -1.0
    if not least <= seconds <= LONGEST_SECONDS:
        raise UsageError(
            f"{option} {text[:40]!r} is not a time from {1000 * least:g}ms to 24h: write 60s or 2m"
        )
    return seconds


def parse_share(option: str, text: str) -> float:
    """Return the share of ``0.1%``, as a number from 0 to 1.

    Raises:
        UsageError: The text is no percentage.
    """
    found = _PERCENT.fullmatch(text.strip())
    share = float(found[1]) / 100 if found else 2.0
    if share > 1:
        raise UsageError(f"{option} {text[:40]!r} is not a percentage such as 0.1%")
    return share


def parse_refused(option: str, text: str) -> float:
    """Return the share of ``0.1%`` that a goal lets be refused.

    Raises:
        UsageError: It is so large, or so small, that it means nothing.
    """
    share = parse_share(option, text)
    if share and not _LEAST_REFUSED <= share <= _MOST_REFUSED:
        raise UsageError(
            f"{option} {text[:40]!r} is no goal: write 0%, or from {100 * _LEAST_REFUSED:g}% to "
            f"{100 * _MOST_REFUSED:g}%"
        )
    return share


def parse_megabytes(option: str, text: str) -> int:
    """Return the MB (1,048,576 bytes each, as in Pulsar's keys) of ``512MB`` or ``2GB``.

    Raises:
        UsageError: The text is none of these, or less than 2 MB: one each for heap and direct.
    """
    found = _MEGABYTES.fullmatch(text.strip())
    megabytes = float(found[1]) * _MEGABYTES_EACH[(found[2] or "m")[0].lower()] if found else 0.0
    if not 2 <= megabytes <= _MOST_MEGABYTES:
        raise UsageError(
            f"{option} {text[:40]!r} is not a size from 2MB to 1TB: write 512MB or 2GB"
        )
    return int(megabytes)
