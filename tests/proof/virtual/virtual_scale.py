"""Storms of 50,000 sockets of each family, and one of 100,000 clients, in virtual time.

The scenarios are the files in ``storms``; ``loadgen run FILE --executor virtual`` plays one alone.
The figure is this process's CPU time: other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pyarrow.compute as pc
from loadgen.virtual.simulation import run_in_virtual_time

from loadgen.documents.reading import read_document
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, Family
from tests.proof.result import ProofResult

if TYPE_CHECKING:
    from loadgen.virtual.simulation import VirtualRun

    from tests.proof.result import ProofOptions

STORMS = Path(__file__).parent / "storms"
CROWD = "crowd"
CROWD_GOAL_SECONDS = 120.0
"""CPU time in which the crowd's storm is to be over: a figure beside the one that was measured."""
QUICK_SHARE = 250


def prove(options: ProofOptions) -> ProofResult:
    """Play the storms one after another."""
    result = ProofResult()
    for name in (*get_args(Family), CROWD):
        options.note(name)
        play(name, result, quick=options.quick)
    return result


def play(name: str, result: ProofResult, *, quick: bool) -> None:
    """Play one storm, a small one if ``quick``."""
    document = read_document(str(STORMS / f"{name}.yaml"))
    scenario = document.scenario
    assert isinstance(scenario, DiscoveryScenario)
    if quick:
        scenario = _smaller(scenario)
    begun = time.process_time()
    run = run_in_virtual_time(scenario, document.cluster)
    cpu_seconds = time.process_time() - begun
    _judge(name, scenario, run, cpu_seconds, result)
    if name == CROWD:
        result.figures[name]["goal_cpu_seconds"] = CROWD_GOAL_SECONDS


def _smaller(scenario: DiscoveryScenario) -> DiscoveryScenario:
    groups = tuple(
        each.model_copy(update={"clients": each.clients // QUICK_SHARE}) for each in scenario.groups
    )
    clients = sum(each.clients for each in groups)
    return scenario.model_copy(update={"groups": groups, "clients": clients})


def _judge(
    name: str,
    scenario: DiscoveryScenario,
    run: VirtualRun,
    cpu_seconds: float,
    result: ProofResult,
) -> None:
    (report,) = run.reports
    assert report.clients is not None
    requests = report.rows.num_rows
    outcomes = Counter(report.clients["outcome"].to_pylist())
    wrong = Counter(report.rows["outcome"].to_pylist())["wrong"]
    sockets: int = pc.sum(report.clients["connections"]).as_py()
    last: float = pc.max(report.clients["back_seconds"]).as_py() or 0.0
    held = [
        process.held_bytes(kind)
        for process in run.watch.processes.values()
        for kind in ("heap", "direct")
    ]
    result.figures[name] = {
        "clients": scenario.clients,
        "sockets": sockets,
        "back": outcomes["back"],
        "refused": outcomes["refused"],
        "wrong": wrong,
        "requests": requests,
        "cpu_seconds": round(cpu_seconds, 1),
        "requests_per_cpu_second": round(requests / cpu_seconds),
        "last_back_seconds": round(last, 1),
    }
    result.check(
        f"{name}: all are back or refused by name",
        outcomes["back"] > 0 and outcomes["back"] + outcomes["refused"] == scenario.clients,
        f"{name}: of {scenario.clients} clients with {sockets} sockets {dict(outcomes)}, the last"
        f" after {last:.1f} s; {requests} requests in {cpu_seconds:.1f} s of CPU",
    )
    result.check(
        f"{name}: nothing is wrong, nothing is held",
        wrong == 0 and not any(held),
        f"{name}: {wrong} wrong of {requests} answers; limiters hold {held}",
    )
    result.check(
        f"{name}: all sockets count",
        sockets == scenario.connections or outcomes["refused"] > 0,
        f"{name}: {sockets} sockets, {scenario.connections} planned",
    )
