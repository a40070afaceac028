"""Memory and permits of broker and proxy over time, in one picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadgen.places.sampling import Samples
from loadgen.report.charts import Chart, Series, colour_of
from loadgen.report.drawing import picture
from loadgen.report.page import write_picture
from loadgen.results.units import Unit
from tests.proof.consumers.crowd import CrowdSize

KINDS = ("heap", "direct")


@dataclass(frozen=True)
class Curves:
    """The samples of a run.

    Attributes:
        samples: Of the servers.
        begun: The moment that is second 0.
        spans: Start and duration of each start of the crowd, in seconds.
    """

    samples: Samples
    begun: float
    spans: Mapping[str, tuple[float, float]]

    def points(self, module: str, metric: str) -> list[tuple[float, float]]:
        moments, values = self.samples.series(module, metric)
        return [(at - self.begun, value) for at, value in zip(moments, values, strict=True)]

    def values(self, module: str, metric: str) -> list[float]:
        return list(self.samples.series(module, metric)[1])

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the peaks of each server."""
        found = {}
        for module in self.samples.processes:
            resident = self.values(module, "process_resident_memory_bytes")
            cpu = self.values(module, "process_cpu_seconds_total")
            high = self.values(module, "process_resident_memory_high_water_bytes")
            found[module] = {
                "resident_idle_bytes": resident[0] if resident else 0.0,
                "resident_peak_bytes": max(high, default=0.0),
                "cpu_seconds": cpu[-1] - cpu[0] if cpu else 0.0,
            }
            for kind in KINDS:
                used = self.values(module, permits_metric(module, kind))
                waiting = self.values(module, waiting_metric(module, kind))
                found[module][f"{kind}_permits_peak_bytes"] = max(used, default=0.0)
                found[module][f"{kind}_waiting_peak"] = max(waiting, default=0.0)
        return found


def permits_metric(module: str, kind: str) -> str:
    """Metric of permits in use."""
    return f"pulsar_{module}_topic_list_{kind}_memory_used_bytes"


def waiting_metric(module: str, kind: str) -> str:
    """Metric of requests that wait for permits."""
    return f"pulsar_{module}_topic_list_{kind}_queue_size"


def draw(curves: Curves, size: CrowdSize, out: Path) -> list[Path]:
    spans = curves.spans.items()
    bands = [(at, at + seconds, f"{name}: {seconds:.1f} s") for name, (at, seconds) in spans]
    memory: list[Series] = []
    permits: list[Series] = []
    waiting: list[Series] = []
    for number, module in enumerate(curves.samples.processes):
        colour = colour_of(number)
        resident = curves.points(module, "process_resident_memory_bytes")
        memory.append(Series(module, resident, colour=colour))
        for dash, kind in enumerate(KINDS):
            for found, metric in ((permits, permits_metric), (waiting, waiting_metric)):
                points = curves.points(module, metric(module, kind))
                found.append(Series(f"{module}, {kind}", points, colour=colour, dash=2 * dash))
    words = f"{size.consumers:,} regex consumers attach to {size.topics:,} topics"
    charts = [
        Chart(f"{words}: resident memory", memory, Unit.BYTES, bands=bands),
        Chart("Permits in use", permits, Unit.BYTES, bands=bands),
        Chart("Requests that wait for permits", waiting, bands=bands),
    ]
    path = out / "regex-consumers.svg"
    write_picture(path, picture(charts, columns=1))
    return [path]
