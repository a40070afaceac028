"""The figures of one run of a document: in virtual time, or with real servers and sockets."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.analysis.judging import judge
from loadgen.analysis.measured import Measured, NotMeasuredError
from loadgen.analysis.thresholds import parse_threshold, parse_thresholds
from loadgen.own_servers.cluster import ClusterWanted, reached, running_cluster
from loadgen.own_servers.configuration import ServerFiles
from loadgen.results.reading import load_client_rows, load_request_rows
from loadgen.results.writing import process_document
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.virtual.simulation import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.documents.document import Document

FIGURES = {
    "clients.back.rate": "0%",
    "clients.back.p50": "0s",
    "clients.back.p99": "0s",
    "clients.back.max": "0s",
    "requests.refused.rate": "0%",
    "requests.failed.rate": "0%",
    "list.response.p50": "0s",
    "list.response.p99": "0s",
    "list.response.max": "0s",
    **{
        f"{server}.{kind}.{what}.max": "0"
        for server in ("broker", "proxy")
        for kind in ("heap", "direct")
        for what in ("used", "waiting")
    },
}
"""What each point of a sweep is measured by, with a value of its unit."""
_MEASURES = {name: parse_threshold(f"{name} >= {unit}") for name, unit in FIGURES.items()}


@dataclass(frozen=True)
class RunFigures:
    """What one run came to.

    Attributes:
        figures: By the names of measures; None of what never happened or nobody measured.
        missed: The thresholds of the document that did not hold, with what was found.
    """

    figures: Mapping[str, float | None]
    missed: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if all thresholds held."""
        return not self.missed


def virtual_figures(document: Document) -> RunFigures:
    """Run a document in virtual time."""
    run = run_in_virtual_time(document.scenario, document.cluster)
    processes = {name: process_document(each) for name, each in run.watch.processes.items()}
    return _figures(document, Measured.of_reports(run.reports, processes))


def real_figures(document: Document) -> RunFigures:
    """Run a document with servers and processes of its own; nothing of it stays.

    Raises:
        LoadgenError: It could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
        out = Path(folder)
        wanted = ClusterWanted(document.cluster, out / "probe", ServerFiles())
        with running_cluster(wanted, lambda _: None) as cluster:
            options = RunOptions(
                name="probe", out=out, tasks=min(2, document.scenario.clients), executor="process"
            )
            result = execute(reached(document, cluster), cluster.watched(options))
        if result.interrupted:
            raise KeyboardInterrupt
        requests, clients = load_request_rows(out / "probe"), load_client_rows(out / "probe")
        return _figures(document, Measured(requests, clients, result.summary["processes"]))


def _figures(document: Document, measured: Measured) -> RunFigures:
    verdicts = judge(parse_thresholds(document.head.thresholds), measured)
    return RunFigures(
        {name: _value(measured, name) for name in FIGURES},
        tuple(f"{each.threshold}: {each.found}" for each in verdicts if not each.passed),
    )


def _value(measured: Measured, name: str) -> float | None:
    try:
        value = measured.value(_MEASURES[name])
    except NotMeasuredError:
        return None
    return None if math.isinf(value) else value
