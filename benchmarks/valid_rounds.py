"""Rounds that count only if the measured servers, not the clients, were the bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.result import BenchResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.result import Figure

VALID_CORE_SHARE = 0.9
"""A round is valid if every judged server had this share of a core."""
REPEATS_PER_ROUND = 2
Round = TypeVar("Round", bound=dict[str, Any])


def valid_rounds(
    wanted: int, measure: Callable[[int], Round], valid: Callable[[Round], bool]
) -> list[Round]:
    """Measure rounds, numbered from 1, until enough of them are valid, or too many were not."""
    rounds: list[Round] = []
    most = wanted * (1 + REPEATS_PER_ROUND)
    while sum(map(valid, rounds)) < wanted and len(rounds) < most:
        rounds.append(measure(len(rounds) + 1))
    return rounds


def conclude_valid(
    rounds: Sequence[Round],
    wanted: int,
    valid: Callable[[Round], bool],
    figures: Callable[[Sequence[Round]], Sequence[Figure]],
    judged: str,
    remark: str,
) -> BenchResult:
    """Return the figures of the valid rounds or, if none is valid, of all rounds with a remark.

    Args:
        rounds: The rounds of :func:`valid_rounds`.
        wanted: The number of valid rounds that were wanted.
        valid: Returns True for a valid round.
        figures: Returns the figures of some rounds.
        judged: The servers that decide whether a round is valid, in words.
        remark: A remark on the figures.
    """
    good = [found for found in rounds if valid(found)]
    remarks = [remark]
    if len(good) < wanted:
        of_all = "" if good else " The figures are of all rounds and not valid."
        remarks.insert(
            0,
            f"Only {len(good)} of {len(rounds)} rounds were valid ({wanted} wanted): {judged} had "
            f"under {VALID_CORE_SHARE:g} of a core.{of_all}",
        )
    raw: list[dict[str, Any]] = [{"valid": valid(found), **found} for found in rounds]
    return BenchResult(figures(good or rounds), remarks, raw)
