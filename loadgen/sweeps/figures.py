"""The figures of one run of a document: in virtual time, or with real servers and sockets."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.analysis.measured import Measured, NotMeasuredError
from loadgen.analysis.thresholds import parse_threshold, parse_thresholds
from loadgen.errors import ExitCode
from loadgen.own_servers.cluster import ClusterWanted, reached, running_cluster
from loadgen.own_servers.configuration import ServerFiles
from loadgen.results.reading import load_client_rows, load_request_rows
from loadgen.results.verdict import verdict_of
from loadgen.results.writing import agreed_reports
from loadgen.run.documents import summary_document
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
"""The figures of each point of a sweep, with a value of their unit."""
_MEASURES = {name: parse_threshold(f"{name} >= {unit}") for name, unit in FIGURES.items()}


@dataclass(frozen=True)
class RunFigures:
    """The figures of one run.

    Attributes:
        figures: By the names of measures; None of what never happened or nobody measured.
        exit_code: What ``loadgen run`` would end with: a wrong answer, books that do not balance
            and a generator that was the limit count before the document's thresholds.
        missed: What did not hold, a sentence each.
    """

    figures: Mapping[str, float | None]
    exit_code: ExitCode = ExitCode.PASSED
    missed: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if nothing failed."""
        return self.exit_code is ExitCode.PASSED

    @property
    def valid(self) -> bool:
        """True if its figures are to be relied on: it tells whether thresholds hold."""
        return self.exit_code in (ExitCode.PASSED, ExitCode.THRESHOLDS)


def virtual_figures(document: Document) -> RunFigures:
    """Run a document in virtual time."""
    run = run_in_virtual_time(document.scenario, document.cluster)
    reports = agreed_reports(run.reports)
    options = _options(document, Path(), "virtual")
    summary = summary_document(document.scenario, options, reports, run.watch, ())
    return _figures(Measured.of_reports(reports, summary["processes"]), summary)


def real_figures(document: Document) -> RunFigures:
    """Run a document with servers and processes of its own; nothing of it stays.

    Raises:
        LoadgenError: It could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
        out = Path(folder)
        options = _options(document, out, "process")
        wanted = ClusterWanted(document.cluster, out / options.name, ServerFiles())
        with running_cluster(wanted, lambda _: None) as cluster:
            result = execute(reached(document, cluster), cluster.watched(options))
        if result.interrupted:
            raise KeyboardInterrupt
        directory = result.directory
        requests, clients = load_request_rows(directory), load_client_rows(directory)
        return _figures(Measured(requests, clients, result.summary["processes"]), result.summary)


def _options(document: Document, out: Path, executor: str) -> RunOptions:
    return RunOptions(
        name="probe",
        out=out,
        executor=executor,
        tasks=min(2, document.scenario.clients),
        thresholds=parse_thresholds(document.head.thresholds),
    )


def _figures(measured: Measured, summary: Mapping[str, Any]) -> RunFigures:
    verdict = verdict_of(summary)
    return RunFigures(
        {name: _value(measured, name) for name in FIGURES},
        verdict.exit_code,
        tuple(each.sentence for each in (*verdict.checks, *verdict.thresholds) if not each.passed),
    )


def _value(measured: Measured, name: str) -> float | None:
    try:
        value = measured.value(_MEASURES[name])
    except NotMeasuredError:
        return None
    return None if math.isinf(value) else value
