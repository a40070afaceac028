"""The engine of a search: each try is a storm in virtual time."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadgen.advice.outcome import outcome_of
from loadgen.advice.scenario import document_of
from loadgen.documents.reading import parse_document
from loadgen.virtual.service_times import FLOODGATE, PULSAR
from loadgen.virtual.simulation import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.advice.advice import Request
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting
    from loadgen.virtual.simulation import VirtualRun

_USED = ("_topic_list_heap_memory_used_bytes", "_topic_list_direct_memory_used_bytes")


def engine_for(request: Request) -> Callable[[Setting], Outcome]:
    """Return what runs a storm of a setting in virtual time and tells its outcome."""
    workload, goal, profile = request.workload, request.goal, request.profile
    times = PULSAR if profile == "pulsar" else FLOODGATE

    def outcome(setting: Setting) -> Outcome:
        document = parse_document(document_of(workload, goal, setting, profile))
        with _servers_silent():
            run = run_in_virtual_time(document.scenario, document.cluster, times=times)
        (report,) = run.reports
        return outcome_of(goal, report.rows, report.clients, _accounted(run))

    return outcome


def _accounted(run: VirtualRun) -> dict[str, int]:
    """Return the most that each server's limiter was seen to hold."""
    held: dict[str, dict[float, float]] = {}
    for at, server, metric, value in run.watch.points(lambda at: at):
        if metric.endswith(_USED):
            of_server = held.setdefault(server, {})
            of_server[at] = of_server.get(at, 0.0) + value
    return {server: round(max(sums.values(), default=0)) for server, sums in held.items()}


@contextmanager
def _servers_silent() -> Iterator[None]:
    """Keep the simulated servers' own words, a line for each refusal, off the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
