"""Compares groups of runs: medians of repeats, their spread, and whether a difference is shown."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.analysis.rank_test import MOST_VALUES, adjusted, rank_test, repeats_needed
from loadgen.analysis.run_figures import figures_of
from loadgen.errors import UsageError
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from loadgen.analysis.measures import Unit

LEVEL = 0.05
"""The probability with which equal runs may look so different."""
_ADDRESSES = ("service_url", "admin_url")
_NAMED = 8


@dataclass(frozen=True)
class FinishedRun:
    """A run directory's documents, as far as they are compared."""

    place: str
    description: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def conditions(self) -> dict[str, Any]:
        """Everything that has to be alike in runs that are compared: what was asked of servers."""
        scenario = dict(self.description.get("scenario") or {})
        for name in _ADDRESSES:
            scenario.pop(name, None)
        return scenario

    @property
    def executor(self) -> str:
        """The executor that ran it: all play the same schedule, so runs of two may be compared."""
        return str(self.description.get("executor"))


@dataclass(frozen=True)
class Group:
    """Repeats of one run: of one label and executor, and under the same conditions."""

    label: str
    runs: list[FinishedRun]

    @property
    def conditions(self) -> dict[str, Any]:
        """Those of all its runs."""
        return self.runs[0].conditions

    @property
    def executor(self) -> str:
        """That of all its runs."""
        return self.runs[0].executor

    def takes(self, run: FinishedRun) -> bool:
        """Tell whether a run is a repeat of the others."""
        known = (self.label, self.executor, self.conditions)
        return known == (str(run.summary["label"]), run.executor, run.conditions)


@dataclass(frozen=True)
class Side:
    """One group's figures of one row."""

    median: float
    least: float
    most: float
    repeats: int


@dataclass(frozen=True)
class Difference:
    """A group against the baseline, in one row.

    Attributes:
        ratio: Its median by the baseline's; None where that is 0.
        probability: That equal groups differ so much, shared by all rows; None: all are equal.
        shown: Whether that is improbable enough.
    """

    ratio: float | None
    probability: float | None
    shown: bool


@dataclass(frozen=True)
class Row:
    """One figure of all groups; the baseline has no difference."""

    figure: str
    unit: Unit
    sides: list[Side]
    differences: list[Difference | None]


@dataclass(frozen=True)
class Comparison:
    """Groups, the baseline first, and their rows.

    Attributes:
        unlike: Conditions that are not alike, where they were to be compared all the same.
        doubts: Runs whose figures are not to be relied on, and why.
        enough: Repeats of each group with which every figure could show a difference.
    """

    groups: list[Group]
    rows: list[Row]
    unlike: list[str]
    doubts: list[str]
    enough: int

    @property
    def executors(self) -> list[str]:
        """Those of the groups, where they are not all the same."""
        found = [group.executor for group in self.groups]
        return found if len(set(found)) > 1 else []

    @property
    def can_show(self) -> bool:
        """True if the groups have as many repeats as a difference needs."""
        return all(len(group.runs) >= self.enough for group in self.groups)


def grouped(runs: Iterable[FinishedRun]) -> list[Group]:
    """Return groups of repeats, in the order of their first runs."""
    groups: list[Group] = []
    for run in runs:
        group = next((group for group in groups if group.takes(run)), None)
        if group is None:
            groups.append(Group(str(run.summary["label"]), [run]))
        else:
            group.runs.append(run)
    return groups


def compare(
    runs: Sequence[FinishedRun], baseline: str | None = None, *, force: bool = False
) -> Comparison:
    """Compare runs, which group by label.

    Args:
        runs: In the order of their columns.
        baseline: Label of the group that others are compared with; None is the first one.
        force: Whether unlike runs are compared.

    Raises:
        UsageError: Runs are unlike, nothing has the baseline's label, or there are too many.
    """
    groups = _ordered(grouped(runs), baseline)
    unlike = _unlike(groups)
    if unlike and not force:
        raise UsageError(
            f"these runs are not alike in {', '.join(unlike[:_NAMED])}: compare runs of one "
            "scenario, or say --force"
        )
    if any(len(groups[0].runs) + len(each.runs) > MOST_VALUES for each in groups[1:]):
        raise UsageError(f"two groups have more than {MOST_VALUES} runs: compare fewer repeats")
    values = _values(groups)
    rows, tests = _rows(values), sum(_may_differ(row) for row in values.values())
    enough = repeats_needed(LEVEL, max(1, tests * (len(groups) - 1)))
    return Comparison(groups, rows, unlike, list(_doubts(groups)), enough)


def _ordered(groups: list[Group], baseline: str | None) -> list[Group]:
    if baseline is None:
        return groups
    chosen = [group for group in groups if group.label == baseline]
    if not chosen:
        labels = ", ".join(dict.fromkeys(group.label for group in groups))
        raise UsageError(f"--baseline {baseline[:60]!r} is no label of these runs: {labels}")
    return chosen + [group for group in groups if group.label != baseline]


def _unlike(groups: Sequence[Group]) -> list[str]:
    """Return the names of conditions that differ between groups."""
    conditions = [group.conditions for group in groups]
    names = dict.fromkeys(name for each in conditions for name in each)
    return [
        name
        for name in names
        if any(each.get(name) != conditions[0].get(name) for each in conditions)
    ]


def _doubts(groups: Sequence[Group]) -> Iterator[str]:
    for run in (run for group in groups for run in group.runs):
        summary = run.summary
        if summary.get("wrong"):
            yield f"{run.place}: {plural(summary['wrong'], 'answer')} wrong"
        if summary.get("generator_limited"):
            yield f"{run.place}: the generator was the limit"
        if summary.get("interrupted"):
            yield f"{run.place}: it was ended early"


_Values = dict[str, tuple["Unit", list[list[float]]]]


def _values(groups: Sequence[Group]) -> _Values:
    """Return each figure's values, a list for each group, where every run has it.

    Refusals that a run had none of are zero, not unknown.
    """
    found = [
        [{each.name: each for each in figures_of(run.summary)} for run in group.runs]
        for group in groups
    ]
    units = {name: each.unit for group in found for run in group for name, each in run.items()}
    values: _Values = {}
    # A reason that only a later run met stands beside the others all the same.
    for name in sorted(units, key=_place):
        unit, counted = units[name], name.startswith("refused: ")
        rows = [
            [run[name].value if name in run else 0.0 for run in group if name in run or counted]
            for group in found
        ]
        if all(len(row) == len(group) for row, group in zip(rows, found, strict=True)):
            values[name] = (unit, rows)
    return values


def _place(figure: str) -> int:
    """Return the place of a row: answered, refused with its reasons, then as they were found."""
    first = ("answered", "refused")
    kind = figure.partition(":")[0]
    return first.index(kind) if kind in first else len(first)


def _may_differ(row: tuple[Unit, list[list[float]]]) -> bool:
    return len({value for side in row[1] for value in side}) > 1


def _rows(values: _Values) -> list[Row]:
    tested = {
        (name, place): rank_test(sides[0], sides[place])
        for name, (_, sides) in values.items()
        if _may_differ(values[name])
        for place in range(1, len(sides))
    }
    shared = dict(zip(tested, adjusted(list(tested.values())), strict=True))
    return [
        Row(
            name,
            unit,
            [_side(each) for each in sides],
            [
                None,
                *(
                    _difference(sides, place, shared.get((name, place)))
                    for place in range(1, len(sides))
                ),
            ],
        )
        for name, (unit, sides) in values.items()
    ]


def _side(values: Sequence[float]) -> Side:
    return Side(statistics.median(values), min(values), max(values), len(values))


def _difference(
    sides: Sequence[Sequence[float]], place: int, probability: float | None
) -> Difference:
    base, found = statistics.median(sides[0]), statistics.median(sides[place])
    shown = probability is not None and probability <= LEVEL
    return Difference(found / base if base else None, probability, shown)
