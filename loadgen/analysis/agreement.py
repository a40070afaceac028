"""Says in one page where Floodgate and a real Pulsar agree, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.analysis.comparison_text import escaped, side_text
from loadgen.analysis.measures import Unit
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.analysis.compare import Comparison, Row

# Medians nearer than this are taken for the same: counts and bytes, and times.
SHARE, TIME_SHARE, TIME_SECONDS = 0.02, 0.05, 0.02
_LEFT_OUT = (
    "p999",
    "p9999",
    "processor time",
    "memory over idle",
    "highest scrape",
    "unread at most",
)
"""Figures that differ by how a server is made, or that a few hundred requests cannot tell."""


@dataclass(frozen=True)
class Agreement:
    """One figure of both sides.

    Attributes:
        apart: The share by which the second median lies from the first; None where that is 0.
        agrees: Whether it is near enough.
    """

    row: Row
    apart: float | None
    agrees: bool


def agreements(comparison: Comparison) -> list[Agreement]:
    """Return how near both sides are, in each figure that both can tell."""
    return [_agreement(row) for row in comparison.rows if not row.figure.endswith(_LEFT_OUT)]


def _agreement(row: Row) -> Agreement:
    first, second = (side.median for side in row.sides)
    difference = abs(second - first)
    apart = (second - first) / first if first else None
    allowed = SHARE * max(first, second)
    if row.unit is Unit.SECONDS:
        allowed = max(TIME_SHARE * max(first, second), TIME_SECONDS)
    return Agreement(row, 0.0 if first == second else apart, difference <= allowed)


def page_of(comparison: Comparison, versions: Sequence[str], command: str) -> str:
    """Return the page as Markdown.

    Args:
        comparison: Of two groups.
        versions: What each side calls its version.
        command: The arguments of ``loadgen run`` that both sides share.
    """
    found = agreements(comparison)
    agreed = [each for each in found if each.agrees]
    labels = [group.label for group in comparison.groups]
    runs = plural(len(comparison.groups[0].runs), "run")
    lines = [
        f"# {labels[0]} beside {labels[1]}",
        "",
        f"`loadgen run {command}`, {runs} of each, in turn. {labels[0]} is {versions[0]}, "
        f"{labels[1]} is {versions[1]}.",
        "",
        f"They agree in {len(agreed)} of {plural(len(found), 'figure')}: medians within "
        f"{SHARE:.0%}, times within {TIME_SHARE:.0%} or {TIME_SECONDS * 1000:.0f} ms.",
        "",
        f"| median (spread) | {escaped(labels[0])} | {escaped(labels[1])} | apart | |",
        "|---|---:|---:|---:|---|",
        *(_line(each) for each in found),
        "",
        *(f"Not to be relied on: {escaped(doubt)}." for doubt in comparison.doubts),
    ]
    unlike = [name for name in comparison.unlike if name != "namespaces"]
    if unlike:
        lines.append(f"They were not asked alike: {', '.join(unlike)} differ.")
    return "\n".join(lines).rstrip() + "\n"


def _line(agreement: Agreement) -> str:
    row = agreement.row
    first, second = (side_text(side, row.unit) for side in row.sides)
    apart = "" if agreement.apart is None else f"{agreement.apart * 100:+.1f} %"
    word = "agree" if agreement.agrees else "differ"
    return f"| {escaped(row.figure)} | {first} | {second} | {apart} | {word} |"
