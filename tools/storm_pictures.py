"""Draw docs/images/storm-*.svg from stored storms: a row per panel, with phases and alerts.

Run this after a change of a stored storm; a test compares the pictures with a new drawing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from loadgen.report.charts import Chart, Series, colour_of, peak_words  # noqa: E402 - the path
from loadgen.report.drawing import picture  # noqa: E402
from loadgen.results.units import Unit  # noqa: E402
from tools.storms import EVERY_SECONDS, Firing, Storm, stored  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.report.charts import Point

IMAGES = ROOT / "docs" / "images"
PICTURES = {
    "storm-restart.svg": (
        ("A real 4.2.4", "restart-real", "broker"),
        ("Floodgate's proxy, readers of 40 kB/s", "slow-ours", "proxy"),
    ),
    "storm-stuck.svg": (
        ("A real 4.2.4", "stuck-real", "broker"),
        ("Floodgate's proxy", "stuck-ours", "proxy"),
    ),
}
"""Adjacent storms by file: title, stored storm, and role."""
KINDS = ("heap", "direct")
HIGH = 0.8
"""Share of its limit from which memory is high, as in the alert."""
_OLDEST = 'floodgate_topic_list_oldest_waiter_seconds{{type="{}"}}'


def drawn(name: str) -> str:
    """Return a picture as SVG, with a column for each storm and a row for each panel."""
    columns = [[*panels(label, stored(storm), role)] for label, storm, role in PICTURES[name]]
    return picture([chart for row in zip(*columns, strict=True) for chart in row], len(columns))


def panels(label: str, storm: Storm, role: str) -> Iterator[Chart]:
    """Yield the panels on a server in a storm, as a dashboard shows them, and on its alerts."""
    shown: list[tuple[str, str, Unit, list[tuple[str, Sequence[Point]]]]] = [
        ("lists that clients asked for", "requests", Unit.COUNT, _outcomes(storm)),
        ("memory of topic lists", "share of its limit", Unit.SHARE, _shares(storm, role)),
        ("lists that wait", "topic lists", Unit.COUNT, _both(storm, role, "queue_size")),
        ("how long lists waited", "wait", Unit.SECONDS, _waits(storm, role)),
        ("timeouts so far", "timeouts", Unit.COUNT, _both(storm, role, "timeout_total")),
    ]
    for title, noun, unit, lines in shown:
        limits = [(HIGH, "high")] if unit is Unit.SHARE else []
        series = [
            Series(name, points, "step", colour_of(n), peak_words(points, unit), n)
            for n, (name, points) in enumerate(lines)
        ]
        yield _chart(storm, f"{label}: {title}", series, unit, noun, limits)
    firing = sorted((e for e in storm.firing if e.role == role), key=lambda e: e.first)
    alerts = [line for n, each in enumerate(firing, 1) for line in _firing(n, each)]
    yield _chart(storm, f"{label}: alerts that fire", alerts, Unit.COUNT, "by their number")


def _chart(
    storm: Storm,
    title: str,
    series: Sequence[Series],
    unit: Unit,
    noun: str,
    limits: Sequence[tuple[float, str]] = (),
) -> Chart:
    return Chart(
        title,
        series,
        unit,
        y_title=noun,
        limits=limits,
        marks=[(begin, what) for begin, _, what in storm.phases],
        span=(0.0, storm.seconds),
        x_title="time since the first scrape",
    )


def _firing(number: int, firing: Firing) -> Iterator[Series]:
    """Yield a line for each span in which an alert fires; only the first line has a name.

    An evaluation is assumed to hold until the next one.
    """
    name = f"{number} {firing.alert}"
    words = ", ".join(f"{begin} to {end} s" for begin, end in firing.spans)
    for begin, end in firing.spans:
        points = [(begin, number), (end + EVERY_SECONDS, number)]
        yield Series(name, points, colour=colour_of(number), words=words)
        name = ""


def _both(storm: Storm, role: str, figure: str) -> list[tuple[str, Sequence[Point]]]:
    """Return the points of a metric for heap memory and for direct memory."""
    return [
        (kind, storm.points(role, f"pulsar_{role}_topic_list_{kind}_{figure}")) for kind in KINDS
    ]


def _shares(storm: Storm, role: str) -> list[tuple[str, Sequence[Point]]]:
    limits = dict(_both(storm, role, "memory_limit_bytes"))
    return [
        (kind, [(at, used / limits[kind][-1][1]) for at, used in points])
        for kind, points in _both(storm, role, "memory_used_bytes")
    ]


def _waits(storm: Storm, role: str) -> list[tuple[str, Sequence[Point]]]:
    found: list[tuple[str, Sequence[Point]]] = []
    for kind, waits in _both(storm, role, 'wait_time_ms{quantile="0.99"}'):
        found.append((f"{kind}, p99 of those that ended", [(x, y / 1000) for x, y in waits]))
        if oldest := storm.points(role, _OLDEST.format(kind)):
            found.append((f"{kind}, the oldest that waits", oldest))
    return found


def _outcomes(storm: Storm) -> list[tuple[str, Sequence[Point]]]:
    """Return the cumulative number of requests for each outcome, over all operations."""
    totals: dict[str, dict[float, float]] = {}
    for name in storm.series.get("loadgen", {}):
        if name.startswith("loadgen_requests_total"):
            outcome = name.partition('outcome="')[2].partition('"')[0]
            sums = totals.setdefault(outcome, {})
            for at, value in storm.points("loadgen", name):
                sums[at] = sums.get(at, 0.0) + value
    return [(outcome, [*totals[outcome].items()]) for outcome in sorted(totals)]


def main() -> None:
    """Write every picture of stored storms."""
    for name in PICTURES:
        (IMAGES / name).write_text(drawn(name), encoding="utf-8")


if __name__ == "__main__":
    main()
