"""The families side by side: reattachment times and listing rates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadgen.report.charts import Chart, Series, colour_of
from loadgen.report.drawing import picture
from loadgen.report.page import write_picture
from loadgen.results.units import Unit

_COLUMNS = (
    ("restart", "reports", "All clients start at once"),
    ("broker restart", "reports_behind_broker_restart", "The broker is started again"),
)


def draw(storms: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Write the picture of storms of one family each into ``out``; return its path."""
    seconds = max(storm["storm"]["watched_seconds"] for storm in storms)
    back, asked = [], []
    for phase, report, what in _COLUMNS:
        lines, rates = [], []
        for number, storm in enumerate(storms):
            clients, family = storm["storm"]["clients"], storm["storm"]["family"]
            name, colour = f"{clients:,} {family}", colour_of(number)
            share, curve = storm[phase]["done"] / clients, storm[phase]["curve"]
            points = [(0.0, 0.0)]
            points += [(at, share * step / len(curve)) for step, at in enumerate(curve, 1)]
            lines.append(Series(name, points, "step", colour, dash=number))
            counts = _a_second(storm, phase, report, seconds)
            points = [(float(at), float(count)) for at, count in enumerate(counts)]
            rates.append(Series(name, points, "step", colour, dash=number))
        span = (0.0, float(seconds))
        back.append(Chart(f"{what}: attached", lines, Unit.SHARE, span=span))
        asked.append(Chart("Lists asked for a second", rates, log=True, span=span))
    path = out / "client-storm.svg"
    write_picture(path, picture([*back, *asked]))
    return [path]


def _a_second(storm: Mapping[str, Any], phase: str, report: str, seconds: int) -> list[int]:
    """Return the number of lists, watches' lists included, in each second of a phase."""
    begun = storm[phase]["begun"]
    found = [0] * seconds
    for one in storm[report]:
        for at in (*one["listings"], *one["watches"]):
            if 0 <= at - begun < seconds:
                found[int(at - begun)] += 1
    return found
