"""Memory and permits of broker and proxy over time, in one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.report.drawing import THEMES, dress, save, title

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadgen.report.drawing import Theme
    from loadgen.places.sampling import ProcessWatch, ServerWatch
    from tests.proof.consumers.crowd import CrowdSize

KINDS = ("heap", "direct")
_MB = 1024 * 1024
_SIZE_INCHES = (10.0, 6.4)
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

    def curve(self, module: str, metric: str, unit: float = 1.0) -> Curve:
        """Return seconds and values of a metric."""
        series = self.servers[module].series.get(metric)
        if series is None:
            return [], []
        return [at - self.begun for at in series.at], [value / unit for value in series.values]

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
    """Write one PNG per theme into ``out`` and return their paths."""
    return [
        save(_draw(curves, size, theme), out / f"regex-consumers{theme.suffix}.png", theme)
        for theme in THEMES
    ]


def _draw(curves: Curves, size: CrowdSize, theme: Theme) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    memory, permits, waiting = figure.subplots(3, 1, sharex=True)
    colours = dict(zip(curves.servers, theme.runs, strict=False))
    for module, colour in colours.items():
        resident = curves.curve(module, "process_resident_memory_bytes", _MB)
        memory.plot(*resident, color=colour, linewidth=2, label=module)
        for kind, dash in zip(KINDS, ("-", ":"), strict=True):
            look = {"color": colour, "linestyle": dash, "label": f"{module}, {kind}"}
            permits.plot(*curves.curve(module, permits_metric(module, kind), _MB), **look)
            waiting.plot(*curves.curve(module, waiting_metric(module, kind)), **look)
    memory.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MB")
    permits.yaxis.set_major_formatter(lambda value, _: f"{value:g} MB")
    waiting.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    words = f"{size.consumers:,} regex consumers attach to {size.topics:,} topics"
    for axes, what in (
        (memory, f"{words}: resident memory"),
        (permits, "Permits in use"),
        (waiting, "Requests that wait for permits"),
    ):
        dress(axes, theme)
        title(axes, what, theme)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color=theme.line)
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), labelcolor=theme.ink, fontsize=9,
            frameon=False,
        )  # fmt: skip
        for begin, seconds in curves.spans.values():
            axes.axvspan(begin, begin + seconds, color=theme.shade, zorder=-1)
    for name, (begin, seconds) in curves.spans.items():
        memory.text(
            begin, 1.0, f" {name}: {seconds:.1f} s", color=theme.soft, fontsize=9,
            transform=memory.get_xaxis_transform(), va="top",
        )  # fmt: skip
    return figure
