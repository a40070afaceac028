"""The engine of a search: each try is a storm in virtual time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from loadgen.advice.outcome import accounted, outcome_of
from loadgen.advice.scenario import document_of
from loadgen.advice.search import OutOfTimeError
from loadgen.documents.reading import parse_document
from loadgen.results.writing import process_document
from loadgen.virtual.loop import CutError
from loadgen.virtual.silence import servers_silent
from loadgen.virtual.simulation import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.advice.advice import Request
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting


def engine_for(request: Request, seconds: float = math.inf) -> Callable[[Setting], Outcome]:
    """Return what runs a storm of a setting in virtual time and tells its outcome.

    Args:
        request: The question.
        seconds: From now; a storm that is under way then is cut: ``OutOfTimeError``.
    """
    until = time.perf_counter() + seconds
    workload, goal, profile = request.workload, request.goal, request.profile

    def outcome(setting: Setting) -> Outcome:
        document = parse_document(document_of(workload, goal, setting, profile))
        with servers_silent():
            try:
                run = run_in_virtual_time(
                    document.scenario,
                    document.cluster,
                    may_go_on=lambda: time.perf_counter() < until,
                )
            except CutError:
                raise OutOfTimeError from None
        (report,) = run.reports
        processes = {name: process_document(each) for name, each in run.watch.processes.items()}
        return outcome_of(goal, report.rows, report.clients, accounted(processes))

    return outcome
