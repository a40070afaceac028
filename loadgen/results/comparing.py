"""Comparison of repeated runs: which figures differ significantly, and which agree.

If no difference can be shown, the two sides do not necessarily agree. Two sides agree if the 90 %
interval of the distance (two one-sided tests at 5 %) lies within a margin, which needs five
repeats.

Runs in virtual time are paired by seed: a run is reproducible, so two runs of a seed differ by the
change alone. Then the differences of the pairs are tested.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from os.path import commonprefix
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.errors import UsageError
from loadgen.results.ranks import FEWEST_REPEATS, LEVEL, adjusted, distance, paired_distance
from loadgen.results.results import Results
from loadgen.results.summary import summary_of
from loadgen.results.units import LOST, Unit, in_words, markdown_table, plain
from loadgen.results.verdict import verdict_of
from loadgen.results.vocabulary import unit_of
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.results.ranks import Distance

MOST_VALUES = 60
"""Most values of two sides together; counting more would take seconds."""
SHARE, TIME_SHARE, TIME_SECONDS = 0.02, 0.05, 0.001
"""Margins within which sides agree: for counts and bytes, for times, for times near a timer
step."""
# Of fewer requests a percentile is the slowest request, which has a row of its own.
_FEWEST = {"p50": 1, "p90": 10, "p99": 100, "p999": 1000, "max": 1}
_SERVER_FIGURES = {
    "heap.used": ("heap held at most", "max"),
    "direct.used": ("direct held at most", "max"),
    "heap.timeouts": ("waited for heap in vain", "rise"),
    "direct.timeouts": ("waited for direct in vain", "rise"),
    "unread": ("unread at most", "max"),
    "resident": ("memory, at most", "max"),
    "jvm.heap.used": ("JVM heap, at most", "max"),
    "jvm.direct.used": ("JVM direct memory, at most", "max"),
    "cpu.seconds": ("processor time", "rise"),
}
_OF_ITS_MAKE = ("p999", "processor time", "memory, at most", "JVM heap, at most", "unread at most")
"""Figures not judged: they depend on how a server is built, or need more requests."""
_NOT_ASKED = ("name", "description", "repeats", "expect", "servers", "seed")
"""Parts of a document without influence on the requests to a server."""


class Word(StrEnum):
    """Verdicts on a figure of two groups of runs: agrees, differs, or cannot be judged."""

    AGREE = "agree"
    DIFFER = "differ"
    OPEN = "not shown"
    UNJUDGED = "not judged"


class FinishedRun(NamedTuple):
    """The parts of a run needed for a comparison: directory, run.json and summary."""

    place: str
    run: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def seed(self) -> int | None:
        """The scenario's seed, by which runs in virtual time are paired; None for other runs."""
        virtual = self.run.get("place") == "virtual"
        return (self.run.get("document") or {}).get("seed") if virtual else None

    @property
    def label(self) -> str:
        """The common label of all repeats of a run: the title or, without a title, the name."""
        return str(self.summary["title"] or self.summary["name"])

    @property
    def doubt(self) -> str | None:
        """The reason why the run's figures are unreliable; None for reliable figures."""
        verdict = self.summary["verdict"]
        return None if verdict["level"] in ("fine", "missed") else str(verdict["word"])


def finished_run(directory: Path) -> FinishedRun:
    """Read a run directory, and compute the run's summary from its tables.

    Raises:
        RunDirectoryError: The directory is not from a run, or not of the current version.
    """
    with Results.open(directory) as results:
        summary = summary_of(results, verdict_of(results)).model_dump(mode="json")
        return FinishedRun(str(directory), results.run, summary)


@dataclass(frozen=True)
class Side:
    """The values of one figure in all runs of one group."""

    values: Sequence[float]
    label: str = ""

    @property
    def median(self) -> float:
        """The median of the figure over the repeated runs; infinite for a time that never ended."""
        return statistics.median(self.values)

    def text(self, unit: Unit) -> str:
        """Return the median as text, followed by the range if the values differ."""
        figures = self.median, min(self.values), max(self.values)
        median, least, most = (in_words(unit, each) for each in figures)
        return median if least == most else f"{median} ({least} to {most})"


@dataclass(frozen=True)
class Difference:
    """The difference of a figure between a group of runs and the baseline group.

    Attributes:
        ratio: The group's median divided by the baseline's; None if the baseline's is 0 or
            infinite.
        probability: The probability of such a difference between equal groups, adjusted for the
            number of figures.
        low, high: The interval of the distance from the baseline; None if there are too few
            repeats.
        word: Whether the groups agree, differ, or neither can be shown.
    """

    ratio: float | None
    probability: float
    low: float | None
    high: float | None
    word: Word


@dataclass(frozen=True)
class Row:
    """One figure of all compared groups, with each group's difference from the baseline.

    The baseline's own difference is None.
    """

    figure: str
    unit: Unit
    sides: Sequence[Side]
    differences: Sequence[Difference | None]


class Comparison(NamedTuple):
    """The compared groups of runs, beginning with the baseline, and the groups' figures.

    Attributes:
        doubts: The runs left out, each with the reason.
        unlike: The keys in which the runs' documents differ, if ``force`` allowed the comparison.
        paired: Whether the runs of each group are in the order of the same seeds.
    """

    groups: Mapping[str, Sequence[FinishedRun]]
    rows: Sequence[Row]
    doubts: Sequence[str]
    unlike: Sequence[str]
    paired: bool = False

    def agreed(self) -> tuple[int, int]:
        """Return the number of figures that agree in all groups, and that of judged figures."""
        words = [{each.word for each in row.differences if each} for row in self.rows]
        judged = [each for each in words if Word.UNJUDGED not in each]
        return judged.count({Word.AGREE}), len(judged)


def compare(
    runs: Sequence[FinishedRun], baseline: str | None = None, *, force: bool = False
) -> Comparison:
    """Compare runs, grouped by label; runs with unreliable figures are left out.

    Args:
        runs: The runs, in the order of the columns.
        baseline: The label of the baseline, or the label's head in a column; None is the first
            run's label.
        force: Whether to compare runs of different documents, too.

    Raises:
        UsageError: The runs' documents differ, the baseline has no run, or there are too many or
            too few runs.
    """
    groups: dict[str, list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault(run.label, []).extend([run] if run.doubt is None else [])
    base = _base([*groups], baseline)
    groups = {label: reliable for label, reliable in groups.items() if reliable}
    doubts = [f"{run.place}: {run.doubt}" for run in runs if run.doubt is not None]
    if len(groups) < 2:
        left = f" beside {plural(len(doubts), 'run')} that cannot be relied on" if doubts else ""
        raise UsageError(f"there is nothing to compare: name runs of two labels{left}")
    if base not in groups:
        raise UsageError(
            f"the baseline {base} has no run that can be relied on: name another, --baseline LABEL"
        )
    groups = {base: groups.pop(base), **groups}
    asked = [run.run.get("document") or {} for each in groups.values() for run in each]
    names = dict.fromkeys(name for each in asked for name in each if name not in _NOT_ASKED)
    unlike = [n for n in names if any(each.get(n) != asked[0].get(n) for each in asked)]
    if unlike and not force:
        raise UsageError(
            f"these runs are not alike in {', '.join(unlike)}: compare runs of one document, or "
            "say --force"
        )
    paired = _paired(groups)
    doubts += [
        f"{run.place}: seed {run.seed} in virtual time must occur exactly once under each label"
        for label, kept in paired.items()
        for run in groups[label]
        if run not in kept
    ]
    groups = paired or groups
    first, *others = groups.values()
    if any(len(first) + len(each) > MOST_VALUES for each in others):
        raise UsageError(f"two groups have more than {MOST_VALUES} runs: compare fewer repeats")
    return Comparison(groups, _rows(groups, paired=bool(paired)), doubts, unlike, bool(paired))


def _base(labels: Sequence[str], wanted: str | None) -> str:
    heads = dict(zip(_heads(labels)[1:], labels, strict=True))
    found = labels[0] if wanted is None else heads.get(wanted, wanted)
    if found not in labels:
        known = ", ".join(labels)
        raise UsageError(f"--baseline {found[:60]!r} is no label of these runs: {known}")
    return found


def _paired(groups: Mapping[str, list[FinishedRun]]) -> dict[str, list[FinishedRun]]:
    """Return each group's runs with seeds common to all groups, sorted by seed.

    The result is empty if a run has no seed, or if the groups have no seed in common.
    """
    by_seed = {label: {run.seed: run for run in reversed(runs)} for label, runs in groups.items()}
    common = set.intersection(*map(set, by_seed.values()))
    if not common or any(None in seeds for seeds in by_seed.values()):
        return {}
    order = sorted(seed for seed in common if seed is not None)
    return {label: [runs[seed] for seed in order] for label, runs in by_seed.items()}


def _rows(groups: Mapping[str, Sequence[FinishedRun]], *, paired: bool) -> list[Row]:
    found = {
        label: [{(n, u): v for n, u, v in figures_of(run.summary)} for run in runs]
        for label, runs in groups.items()
    }
    table: dict[tuple[str, Unit], list[Side]] = {}
    for figure in dict.fromkeys(each for group in found.values() for run in group for each in run):
        # A run without refusals of a reason had 0; other missing figures are unknown.
        missing = 0.0 if figure[0].startswith("refused: ") else math.nan
        sides = [
            Side([run.get(figure, missing) for run in group], label)
            for label, group in found.items()
        ]
        if not any(math.isnan(value) for side in sides for value in side.values):
            table[figure] = sides
    test = paired_distance if paired else distance
    tests = [test(each[0].values, e.values) for each in table.values() for e in each[1:]]
    probabilities, intervals = adjusted([each for each, _ in tests]), [each for _, each in tests]
    shared = zip(probabilities, intervals, strict=True)
    rows = []
    for (name, unit), sides in table.items():
        differences = [_difference(unit, sides[0], each, next(shared)) for each in sides[1:]]
        if name.endswith(_OF_ITS_MAKE) or not any(any(each.values) for each in sides):
            differences = [replace(each, word=Word.UNJUDGED) for each in differences]
        rows.append(Row(name, unit, sides, [None, *differences]))
    return rows


def _difference(unit: Unit, first: Side, second: Side, shown: Distance) -> Difference:
    probability, (low, high) = shown[0], shown[1] or (None, None)
    most, margin = max(first.median, second.median), 0.0
    if math.isfinite(most):
        margin = max(TIME_SHARE * most, TIME_SECONDS) if unit is Unit.SECONDS else SHARE * most
    word = Word.DIFFER if probability <= LEVEL else Word.OPEN
    if low is not None and high is not None and -margin <= low and high <= margin:
        word = Word.AGREE  # Shown to be near, even with a small significant difference.
    ratio = None if first.median in (0, math.inf) else second.median / first.median
    return Difference(ratio, probability, low, high, word)


def figures_of(summary: Mapping[str, Any]) -> Iterator[tuple[str, Unit, float]]:
    """Yield the name, unit and value of each figure in a summary, if it has a value."""
    total = summary["total"]
    yield "answered", Unit.COUNT, total["answered"]
    yield "refused", Unit.COUNT, total["refused"]
    for each in summary["reasons"]:
        if each["outcome"] == "refused":
            yield f"refused: {each['reason']}", Unit.COUNT, each["requests"]
    yield "failed", Unit.COUNT, sum(total[each] for each in LOST)
    for each in summary["back"]:
        yield f"{each['group']} back", Unit.COUNT, each["back"]
    yield from _times(summary)
    for server, told in sorted(summary["servers"].items()):
        for figure, (words, column) in _SERVER_FIGURES.items():
            value = told["figures"].get(figure, {}).get(column)
            if value is not None:
                yield f"{server}: {words}", unit_of(figure)[0], value


def _times(summary: Mapping[str, Any]) -> Iterator[tuple[str, Unit, float]]:
    for rows, part, kind, of in (
        (summary["splits"]["by-group-operation"], "part", "response", "requests"),
        (summary["service"], "part", "service", "answered"),
        (summary["back"], "group", "back", "clients"),
    ):
        for each, (name, fewest) in product(rows, _FEWEST.items()):
            found = each[f"{kind}_seconds"] or {}
            if name in found and each[of] >= fewest:
                value = math.inf if found[name] is None else found[name]
                yield f"{each[part]} {kind} {name}", Unit.SECONDS, value


# -- in words -----------------------------------------------------------------------------------


def markdown_of(comparison: Comparison) -> str:
    """Return a comparison as a Markdown page."""
    shared, *labels = map(plain, _heads([*comparison.groups]))
    agree, of = comparison.agreed()
    heads = ["median (spread)", labels[0]]
    heads += [cell for label in labels[1:] for cell in (label, "apart", "")]
    lines = [f"# {shared}{' beside '.join(labels)}", ""]
    if all(len(runs) >= FEWEST_REPEATS for runs in comparison.groups.values()):
        lines.append(
            f"They agree in {agree} of {plural(of, 'figure')}: shown to lie within {SHARE:.0%}, "
            f"times within {TIME_SHARE:.0%} or {TIME_SECONDS * 1000:.0f} ms (90 % intervals)."
        )
    else:
        lines.append(f"Whether they agree needs {FEWEST_REPEATS} repeats of each.")
    if comparison.paired:
        seeds = [str(run.seed) for run in next(iter(comparison.groups.values()))]
        lines += ["", f"Paired by seed ({', '.join(seeds)}), as each run is the same at any time."]
    cells = (_cells(row) for row in comparison.rows if any(any(s.values) for s in row.sides))
    lines += ["", *markdown_table(heads, cells), ""]
    for label, runs in zip(labels, comparison.groups.values(), strict=True):
        names = ", ".join(PurePath(run.place).name for run in runs)
        lines.append(f"- {label}: {plain(names)}")
    lines += ["", *(f"Left out: {doubt}." for doubt in comparison.doubts)]
    if comparison.unlike:
        lines.append(f"They were not asked alike: {', '.join(comparison.unlike)} differ.")
    return "\n".join(lines).rstrip() + "\n"


def _heads(labels: Sequence[str]) -> tuple[str, ...]:
    """Split the labels of a sweep: return the common beginning and the rest of each."""
    end = commonprefix(labels).rfind("=") + 1  # noqa: RUF071 - texts, not paths
    return labels[0][:end], *(label[end:] for label in labels)


def _cells(row: Row) -> list[str]:
    cells = [plain(row.figure)]
    for side, difference in zip(row.sides, row.differences, strict=True):
        cells.append(side.text(row.unit))
        if difference is not None:
            ratio = math.inf if difference.ratio is None else difference.ratio
            apart = f"{(ratio - 1) * 100:+.1f} %" if math.isfinite(ratio) else ""
            cells += [apart, difference.word]
    return cells
