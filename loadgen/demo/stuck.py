"""The demo's second part: healthy clients beside one client that reads nothing, in both profiles.

Small on purpose: limits and topics are those of the recorded case, so it takes ten seconds a
profile, needs no proxy, and runs in a plain process whatever drives the storms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.plan import TopicPlan, TopicShape
from loadgen.demo.plan import (
    STUCK_NAME_BYTES,
    STUCK_RUNS,
    STUCK_TOPICS,
    stuck_broker_settings,
    stuck_scenario,
)
from loadgen.report.pictures import RUN_DIRECTORIES
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadgen.clients.records import RequestCounters
    from loadgen.topics.corpus import Corpus
    from loadgen.demo.plan import DemoRun
    from loadgen.live.steps import StepDisplay

_SEED = 7
_FILES = 1


def run_stuck_part(
    out: Path,
    topics: Path,
    steps: StepDisplay,
    notes: Callable[..., Callable[[RequestCounters], None]],
) -> dict[str, dict[str, Any]]:
    """Make the topics of the second part, run it in both profiles, return the summaries.

    Args:
        out: The demo's directory.
        topics: Where the topics go.
        steps: Where progress is shown.
        notes: Turns a step's note into what takes a run's totals.

    Raises:
        LoadgenError: A server did not start, or a run could not be made.
        KeyboardInterrupt: It was interrupted: what it found is half a run.
    """
    shape = TopicShape(mean_name_bytes=STUCK_NAME_BYTES)
    plan = TopicPlan(STUCK_TOPICS, 1, _SEED, shape)
    corpus = write_corpus(plan, topics, _FILES, in_this_process(lambda done: None))
    return {run.name: _run(run, corpus, out, steps, notes) for run in STUCK_RUNS}


def _run(
    run: DemoRun,
    corpus: Corpus,
    out: Path,
    steps: StepDisplay,
    notes: Callable[..., Callable[[RequestCounters], None]],
) -> dict[str, Any]:
    ((name, entry),) = corpus.manifest.namespaces.items()
    launch = ServerLaunch(
        "broker",
        stuck_broker_settings(run),
        out / RUN_DIRECTORIES / run.name / "broker.log",
        ("--import", str(corpus.directory)),
    )
    with (
        steps.step(f"{run.label}: one client reads nothing") as note,
        running_server(launch) as broker,
    ):
        result = execute(
            stuck_scenario(
                broker.service_url,
                NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash),
            ),
            RunOptions(
                name=run.name,
                label=run.label,
                out=out / RUN_DIRECTORIES,
                tasks=1,
                broker_admin_url=broker.web_url,
                broker_pid=broker.pid,
                on_progress=notes(note),
            ),
        )
    if result.interrupted:
        raise KeyboardInterrupt
    return result.summary
