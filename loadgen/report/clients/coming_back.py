"""Clients of each family over time: how many were to start, were back, and were refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from loadgen.report.chart_math import nice_axis, running_count
from loadgen.report.charts import Curve, Panel
from loadgen.report.panels import Row, time_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from loadgen.report.chart_math import Axis
    from loadgen.results.summary import Run

_POINTS_PER_CURVE = 240
FAMILIES = ("polite", "java-watch", "java-poll", "cpp", "go", "once")
"""In the order in which a report shows them."""


@dataclass(frozen=True)
class ComingBack:
    """The clients of one family in one run, as sorted moments. Units: seconds since T0.

    Attributes:
        asked: When each was to start.
        back: When those came back that did.
        refused: When a request of theirs was refused, which may be often.
        end: When the last request of the run had ended.
    """

    asked: Sequence[float]
    back: Sequence[float]
    refused: Sequence[float]
    end: float

    @property
    def words(self) -> str:
        """The figures at the end."""
        refused = f", {len(self.refused):,} refusals" if self.refused else ""
        return f"{len(self.back):,} of {len(self.asked):,} back{refused}"


def families_of(runs: Sequence[Run]) -> list[str]:
    """Return the families that any of the runs has clients of, in the order of reports."""
    found = {name for run in runs for name in pc.unique(run.clients["family"]).to_pylist()}
    known = [name for name in FAMILIES if name in found]
    return known + sorted(found - set(FAMILIES))


def coming_back(run: Run, family: str) -> ComingBack:
    """Return what became of the clients of a family in a run; nothing if there are none."""
    clients = run.clients.filter(pc.equal(run.clients["family"], family))
    requests = run.rows.filter(pc.equal(run.rows["family"], family))
    refused = requests.filter(pc.equal(requests["outcome"], "refused"))
    ends = [*_moments(run.rows, "finished_seconds")[-1:], *_moments(clients, "back_seconds")[-1:]]
    return ComingBack(
        asked=_moments(clients, "intended_start_seconds"),
        back=_moments(clients, "back_seconds"),
        refused=_moments(refused, "finished_seconds"),
        end=max(ends, default=0.0),
    )


def _moments(table: pa.Table, column: str) -> list[float]:
    return sorted(pc.drop_null(table[column]).to_pylist())


def family_row(runs: Sequence[Run], axis: Axis) -> Row | None:
    """Return a chart for each family, all on one scale; None where clients have no families."""
    families = families_of(runs)
    if not families:
        return None
    found = {name: [coming_back(run, name) for run in runs] for name in families}
    most = max(len(m) for each in found.values() for f in each for m in (f.asked, f.refused))
    y = nice_axis(max(most * 1.08, 4), ticks=4)
    panels = [
        Panel(
            key=f"family-{name}",
            title=name,
            unit="count",
            x=axis,
            y=y,
            x_labels=time_labels(axis),
            curves=[c for index, each in enumerate(found[name]) for c in _curves(index, each)],
            description=f"Clients of family {name} that were back by then, one line per run",
        )
        for name in families
    ]
    return Row(
        "Clients by family",
        "Lines: back, which is to have the list and, where the family watches, the watch. Dotted: "
        "were to start. Dashed: refused so far; a client that tries again may be refused often.",
        panels,
    )


def _curves(run: int, found: ComingBack) -> list[Curve]:
    """Return the lines of one run; nothing where it has no client of the family."""
    if not found.asked:
        return []
    parts = (("asked", found.asked), ("refused", found.refused))
    beside = [
        Curve(run, running_count(moments, found.end, _POINTS_PER_CURVE), "", style)
        for style, moments in parts
        if moments
    ]
    return [
        *beside,
        Curve(run, running_count(found.back, found.end, _POINTS_PER_CURVE), found.words),
    ]
