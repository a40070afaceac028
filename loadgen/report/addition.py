"""The parts that a scenario adds to the report: its registry row names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.scenarios.registry import SCENARIOS, kind_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadgen.results.summary import Run, RunSummary


@dataclass(frozen=True)
class FigureRow:
    """One measure of all runs.

    Attributes:
        group: What the measure belongs to; rows of one group stand together.
        measure: What is measured, with its statistic.
        cells: One text per run, in the order of the runs.
        alarming: Which cells are failures.
    """

    group: str
    measure: str
    cells: Sequence[str]
    alarming: Sequence[bool]


@dataclass(frozen=True)
class Addition:
    """The parts of a report that runs of one scenario alone have.

    Attributes:
        rows: Rows of the table; they stand after what the clients got.
        sentences: What one run shows.
        headline: What all runs show, in one sentence.
        card: A run at a glance.
        section: A part of the page, about numbered runs. If told so it says what was run and shows
            each run at a glance, because the page's top does not.
    """

    rows: Callable[[Sequence[RunSummary]], Iterable[FigureRow]]
    sentences: Callable[[RunSummary], Iterable[str]]
    headline: Callable[[Sequence[RunSummary]], str]
    card: Callable[[int, RunSummary], str]
    section: Callable[[Sequence[tuple[int, Run]], bool], str]


def scenario_place(summary: RunSummary) -> tuple[bool, int]:
    """Return where a run stands in a report: scenarios that add nothing come first."""
    kind = kind_named(summary.scenario)
    return bool(kind.report), list(SCENARIOS).index(kind.name)


def addition_of(summary: RunSummary) -> Addition | None:
    """Import what the scenario of a run adds; None if that is nothing."""
    found: Addition | None = kind_named(summary.scenario).report_addition()
    return found
