"""Confirms an advice: real storms here, of the same scenario, against servers that have the limits.

They are Floodgate's own, in the profile that was asked for; nothing is scaled. A storm that has
more sockets than this machine may open is not run, and the advice says so.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from loadgen.advice.advice import Confirmation
from loadgen.advice.engine import engine_for
from loadgen.advice.findings import findings
from loadgen.advice.goal import misses
from loadgen.advice.outcome import accounted, outcome_of
from loadgen.advice.scenario import document_of, longest_seconds
from loadgen.advice.search import Tries, memory_knobs
from loadgen.analysis.thresholds import parse_thresholds
from loadgen.documents.reading import parse_document
from loadgen.own_servers.cluster import ClusterWanted, reached, running_cluster
from loadgen.own_servers.configuration import ServerFiles
from loadgen.results.reading import load_client_rows, load_request_rows
from loadgen.run.options import RunOptions
from loadgen.run.run import execute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadgen.advice.advice import Advice
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting

MOST_CLIENTS = 20_000
"""Sockets of a storm that fits one machine beside its servers."""
_STORMS = 3
_AROUND_SECONDS = 15.0
"""For topics, servers and connections before a storm, and its report behind it."""
_TASKS = 2


def confirm(advice: Advice, out: Path, seconds: float, note: Callable[[str], None]) -> Advice:
    """Run the advised limits; where they miss the goal, those one step above, as time allows.

    Args:
        advice: Its setting is run.
        out: The folder of the run directories.
        seconds: How long all of it may take.
        note: Told of what is going on.

    Raises:
        LoadgenError: The servers did not start, or the storm could not be run.
    """
    begun = time.perf_counter()
    request, setting = advice.request, advice.setting
    assert setting is not None
    if request.workload.clients > MOST_CLIENTS:
        why = f"{request.workload.clients:,} clients are more sockets than fit one machine"
        return replace(advice, not_confirmed=why)
    longest = longest_seconds(request.workload, request.goal) + _AROUND_SECONDS
    storms: list[Confirmation] = []
    for number in range(1, _STORMS + 1):
        if time.perf_counter() - begun + longest > seconds:
            break
        note(f"storm {number}")
        outcome = _storm(advice, setting, out, number, note)
        met = not misses(request.goal, outcome)
        storms.append(Confirmation(setting, outcome, met))
        if met:
            break
        setting = _larger(advice, setting)
    if not storms:
        why = f"a storm may take {longest:.0f} s, and {max(0.0, seconds):.0f} s were left"
        return replace(advice, not_confirmed=why)
    confirmed = replace(advice, confirmations=tuple(storms))
    return _advised(confirmed, storms[-1].setting, seconds - (time.perf_counter() - begun))


def _larger(advice: Advice, setting: Setting) -> Setting:
    """Return the setting in which each limit that decides is one step larger."""
    deciding = {(each.server, each.key) for each in advice.findings if each.decides}
    larger = setting
    for knob in memory_knobs(setting):
        if (knob.server, knob.key) in deciding:
            larger = knob.above(larger)
    return larger


def _advised(advice: Advice, setting: Setting, seconds: float) -> Advice:
    """Return the advice of the setting that a storm ended with, its neighbours tried again."""
    if setting == advice.setting:
        return advice
    request = advice.request
    tries = Tries(engine_for(request, seconds), request.goal)
    return replace(
        advice,
        setting=setting,
        findings=findings(tries, setting, request.workload, request.profile),
    )


def _storm(
    advice: Advice, setting: Setting, out: Path, number: int, note: Callable[[str], None]
) -> Outcome:
    request = advice.request
    text = document_of(request.workload, request.goal, setting, request.profile)
    document = parse_document(text)
    name = f"storm-{number}"
    wanted = ClusterWanted(document.cluster, out / name, ServerFiles())
    with running_cluster(wanted, note) as cluster:
        options = RunOptions(
            name=name,
            out=out,
            executor="process",
            tasks=min(_TASKS, request.workload.clients),
            thresholds=parse_thresholds(document.head.thresholds),
            scenario_document=text,
            scenario_resolved=document.resolved_text(),
            on_progress=lambda counters: note(
                f"storm {number}: {counters.answered:,} answered, {counters.refused:,} refused"
            ),
        )
        result = execute(reached(document, cluster), cluster.watched(options))
    if result.interrupted:
        raise KeyboardInterrupt
    requests = load_request_rows(result.directory)
    clients = load_client_rows(result.directory)
    return outcome_of(request.goal, requests, clients, accounted(result.summary["processes"]))
