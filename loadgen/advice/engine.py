"""The engine of a search: each try is a storm in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.advice.outcome import accounted, outcome_of
from loadgen.advice.scenario import document_of
from loadgen.documents.reading import parse_document
from loadgen.results.writing import process_document
from loadgen.virtual.silence import servers_silent
from loadgen.virtual.simulation import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.advice.advice import Request
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting


def engine_for(request: Request) -> Callable[[Setting], Outcome]:
    """Return what runs a storm of a setting in virtual time and tells its outcome."""
    workload, goal, profile = request.workload, request.goal, request.profile

    def outcome(setting: Setting) -> Outcome:
        document = parse_document(document_of(workload, goal, setting, profile))
        with servers_silent():
            run = run_in_virtual_time(document.scenario, document.cluster)
        (report,) = run.reports
        processes = {name: process_document(each) for name, each in run.watch.processes.items()}
        return outcome_of(goal, report.rows, report.clients, accounted(processes))

    return outcome
