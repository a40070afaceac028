"""The demo: the same restart storm three times, and one client that reads nothing, twice.

Each run is a shipped document with settings, with servers and topics of its own. At the end the
storm is simulated for consumers that retry, and limits are advised for it. With an
operator's own topics or configuration the same storms are a rehearsal of that cluster.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadgen.behaviours.list import List
from loadgen.documents.reading import read_document
from loadgen.errors import writing
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.plan.group import Reader
from loadgen.results.expectations import parse_expectation
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.verdict import Level, worst_code
from loadgen.studies.advise.advice import quick_advice
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import Question
from loadgen.studies.advise.report import verdict as advised_in_words
from loadgen.studies.demo_checks import (
    Check,
    demo_checks,
    hidden_storm,
    own_checks,
    stuck_checks,
)
from loadgen.studies.demo_figures import Figures, figures_of
from loadgen.studies.demo_storms import (
    CLIENT_TIMEOUT_SECONDS,
    LIMIT_MB,
    RETURNING,
    RETURNING_SECONDS,
    STORMS,
    STUCK,
    DemoOptions,
    DemoRun,
    Storm,
    files_of,
    returning_document,
    storm_document,
    storm_of,
)
from loadgen.studies.dry_run import LIMIT_KEYS
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadgen.documents.model import Document
    from loadgen.errors import ExitCode
    from loadgen.places.options import Place
    from loadgen.studies.points import Experiment

SUMMARY_NAME, RUN_DIRECTORIES, SUMMARY_VERSION = "summary.json", "runs", 3
SOCKET_BUFFER_BYTES = 65_536
ADVICE_GOAL = Goal(back_within_seconds=60.0)
_ADVICE_SECONDS = 8.0
_ADVICE_NAMESPACES = 10
"""As many stand for all, which are alike: topics that are made again take time."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes:
        storms, stuck: The figures of each run of both parts, by its name.
        notes: Sentences on what differs from an operator's cluster.
        last_words: Sentences on consumers that retry, and the advice.
    """

    storms: Mapping[str, Figures]
    stuck: Mapping[str, Figures]
    checks: Sequence[Check]
    notes: Sequence[str]
    last_words: Sequence[str]

    @property
    def runs(self) -> dict[str, Figures]:
        """The figures of all runs."""
        return {**self.storms, **self.stuck}

    @property
    def directories(self) -> list[Path]:
        """Of all runs, for a page."""
        return [each.directory for each in self.runs.values()]

    @property
    def passed(self) -> bool:
        """True if all checks did."""
        return all(each.passed for each in self.checks)

    @property
    def exit_code(self) -> ExitCode:
        """The status that the demo's process exits with: a wrong answer weighs most."""
        verdicts = [each.verdict for each in self.runs.values()]
        wrong = [each for each in verdicts if each.level is Level.WRONG]
        return worst_code(wrong) if wrong or self.passed else Level.MISSED.exit_code


def run_demo(
    options: DemoOptions,
    say: Callable[[str], None] = lambda step: None,
    run: Experiment = experiment,
) -> DemoResult:
    """Run both parts, judge, and write ``summary.json``.

    Args:
        options: What runs.
        say: Told what begins, a line each.
        run: Runs a document.

    Raises:
        LoadgenError: A server did not start, or a storm could not be run.
        KeyboardInterrupt: It was interrupted: what it found is half a demo.
    """
    begun, summary = time.monotonic(), options.out / SUMMARY_NAME
    with writing(options.out):
        summary.unlink(missing_ok=True)  # of an earlier demo, which must not pass for this one
    storm = storm_of(options)
    storms, stuck, words = {}, {}, list[str]()
    for each in STORMS:
        say(f"{each.label}: {plural(options.clients, 'client')} list topics")
        how = replace(options.run, files=files_of(each, options.own))
        storms[each.name] = _ran(storm_document(each, storm, options), each, how, options, run)
    asked_bytes = options.clients * storm.answer_bytes
    notes = options.own.notes() if options.own else []
    if options.rehearsal:
        checks, hidden = own_checks(storms), hidden_storm(storms["off"], asked_bytes)
        notes += [hidden] if hidden else []
    else:
        stuck = _beside_a_silent_one(options, say, run)
        checks = demo_checks(storms, asked_bytes) + stuck_checks(stuck)
        say(f"Simulated: {plural(options.clients, 'consumer')} that retry")
        words = [_returning(storm, options, run)]
        say("Computing the limits under which all recover")
        words += _advised(storm, options)
    result = DemoResult(storms, stuck, checks, notes, words)
    told = {
        "schema_version": SUMMARY_VERSION,
        "duration_seconds": time.monotonic() - begun,
        "topics": sum(each.topics for each in storm.shapes),
        "namespaces": len(storm.shapes),
        "clients": options.clients,
        "answer_bytes": storm.answer_bytes,
        "read_rate_bytes_per_second": options.read_rate,
        "runs": {name: each.told() for name, each in result.runs.items()},
        "checks": [vars(each) for each in checks],
        "passed": result.passed,
        "notes": [*notes, *words],
    }
    summary.write_text(f"{json.dumps(told, indent=2)}\n", encoding="utf-8")
    return result


def _beside_a_silent_one(
    options: DemoOptions, say: Callable[[str], None], run: Experiment
) -> dict[str, Figures]:
    """Run the second part, in plain processes whatever drives the storms."""
    place: Place = "virtual" if options.run.place == "virtual" else "processes"
    how, found = replace(options.run, spark=None, master=None, place=place, tasks=1), {}
    for each in STUCK:
        say(f"{each.label}: one client reads nothing")
        document = read_document("stuck", [f"servers.profile={each.profile}"], parse_expectation)
        found[each.name] = _ran(document, each, how, options, run)
    return found


def _ran(
    document: Document, run: DemoRun, how: RunOptions, options: DemoOptions, start: Experiment
) -> Figures:
    clients = sum(group.count for group in document.clients)
    out, tasks = options.out / RUN_DIRECTORIES, min(how.tasks or 2, clients)
    how = replace(how, out=out, name=run.name, label=run.label, tasks=tasks)
    with Results.open(start(document, how)) as results:
        found = figures_of(run.label, results, write_files(results))
    if found.verdict.level is Level.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def _returning(storm: Storm, options: DemoOptions, run: Experiment) -> str:
    """Simulate consumers that retry, and say how many recover."""
    out = options.out / RUN_DIRECTORIES
    how = RunOptions(out=out, name=RETURNING.name, label=RETURNING.label, place="virtual")
    with Results.open(run(returning_document(storm, options), how)) as results:
        write_files(results)
        (back,) = results.query("back")
        lists = results.value("SELECT count(*) FROM requests WHERE operation = 'list'")
        again = results.value("SELECT count(*) FROM events WHERE what = 'restarted'")
    why = " Refused consumers join the queue again, so it stays long." if again else ""
    return (
        "Real consumers retry. The same storm with Pulsar's limits, simulated with "
        f"{plural(back['clients'], 'consumer')} that restart 5 s after a refusal: "
        f"{back['back']:,} recover within {RETURNING_SECONDS:g} s, after {lists:,} list requests."
        f"{why}"
    )


def _advised(storm: Storm, options: DemoOptions) -> list[str]:
    """Return which limits would bring all clients back within a minute, in a few lines."""
    read = Reader(rate=options.read_rate)
    once = List(name="once", count=options.clients, timeout=CLIENT_TIMEOUT_SECONDS, read=read)
    limits = Limits(heap_mb=LIMIT_MB, direct_mb=LIMIT_MB)
    question = Question(
        (once,),
        storm.shapes[:_ADVICE_NAMESPACES],
        ADVICE_GOAL,
        "pulsar",
        Setting(limits, limits),
        network_bytes=2 * SOCKET_BUFFER_BYTES,
        seconds=_ADVICE_SECONDS,
    )
    advice = replace(quick_advice(question), not_confirmed="`loadgen advise` does that")
    lines = [
        f"Advised limits for Pulsar, for clients that request once (goal: {ADVICE_GOAL}). "
        f"{advised_in_words(advice)} Both met the goal on a quiet machine: "
        "leave room above them."
    ]
    if advice.setting is not None:
        for server in advice.setting.servers:
            keys = advice.setting.of(server).keys()
            lines.append(f"{server}.conf: {', '.join(f'{key}={keys[key]}' for key in LIMIT_KEYS)}")
        lines.append(
            "`loadgen advise` finds all keys for your cluster, what each costs, and what a "
            "smaller value would do."
        )
    return [*lines, *advice.obstacles]
