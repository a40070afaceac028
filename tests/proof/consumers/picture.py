"""Memory and permits of broker and proxy over time, in one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.report.charts import Chart, Series, colour_of
from loadgen.report.drawing import picture
from loadgen.report.pictures import write_picture
from loadgen.report.style import picture_style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.report.axes import Unit
    from loadgen.servers.scrape import ProcessWatch, ServerWatch
    from tests.proof.consumers.crowd import CrowdSize

KINDS = ("heap", "direct")
Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Curves:
    """What was watched.

    Attributes:
        servers: By name.
        begun: The moment that is second 0.
        spans: When a start of the crowd began, and how long it took, in seconds.
    """

    servers: Mapping[str, ProcessWatch]
    begun: float
    spans: Mapping[str, tuple[float, float]]

    @staticmethod
    def of(watch: ServerWatch, begun: float, spans: Mapping[str, tuple[float, float]]) -> Curves:
        """Return the curves of servers that are no longer watched."""
        return Curves(watch.processes, begun, spans)

    def curve(self, module: str, metric: str) -> Curve:
        """Return seconds and values of a metric."""
        series = self.servers[module].series.get(metric)
        if series is None:
            return [], []
        return [at - self.begun for at in series.at], list(series.values)

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the peaks of each server."""
        found = {}
        for module, watch in self.servers.items():
            cpu = "process_cpu_seconds_total"
            found[module] = {
                "resident_idle_bytes": float(watch.resident_idle_bytes or 0),
                "resident_peak_bytes": float(watch.resident_peak_bytes or 0),
                "cpu_seconds": (watch.last(cpu) or 0.0) - (watch.first(cpu) or 0.0),
            }
            for kind in KINDS:
                used = watch.peak(permits_metric(module, kind))
                waiting = watch.peak(waiting_metric(module, kind))
                found[module][f"{kind}_permits_peak_bytes"] = used or 0.0
                found[module][f"{kind}_waiting_peak"] = waiting or 0.0
        return found


def permits_metric(module: str, kind: str) -> str:
    """Return the name of the metric of permits in use."""
    return f"pulsar_{module}_topic_list_{kind}_memory_used_bytes"


def waiting_metric(module: str, kind: str) -> str:
    """Return the name of the metric of requests that wait for permits."""
    return f"pulsar_{module}_topic_list_{kind}_queue_size"


def draw(curves: Curves, size: CrowdSize, out: Path) -> list[Path]:
    """Write the picture into ``out`` and return its path."""
    words = f"{size.consumers:,} regex consumers attach to {size.topics:,} topics"
    resident = [(module, "process_resident_memory_bytes") for module in curves.servers]
    kinds = [(module, kind) for module in curves.servers for kind in KINDS]
    permits = [(f"{each}, {kind}", permits_metric(each, kind)) for each, kind in kinds]
    waiting = [(f"{each}, {kind}", waiting_metric(each, kind)) for each, kind in kinds]
    bands = [
        (begin, begin + seconds, f"{name}: {seconds:.1f} s")
        for name, (begin, seconds) in curves.spans.items()
    ]
    panels: list[tuple[str, list[tuple[str, str]], Unit]] = [
        (f"{words}: resident memory", resident, "bytes"),
        ("Permits in use", permits, "bytes"),
        ("Requests that wait for permits", waiting, "count"),
    ]
    charts = [
        Chart(title, _lines(curves, metrics), unit, bands=bands) for title, metrics, unit in panels
    ]
    path = out / "regex-consumers.svg"
    write_picture(path, picture(charts, picture_style(), columns=1))
    return [path]


def _lines(curves: Curves, metrics: Sequence[tuple[str, str]]) -> list[Series]:
    """Return a line for each metric: a server has a colour, its second metric a dash."""
    servers, lines = list(curves.servers), list[Series]()
    for name, metric in metrics:
        module = name.partition(",")[0]
        points = list(zip(*curves.curve(module, metric), strict=True))
        dash = sum(each.colour == colour_of(servers.index(module)) for each in lines)
        lines.append(Series(name, points, "line", colour_of(servers.index(module)), "", dash))
    return lines
