"""The demo: the same restart storm three times, and one client that reads nothing, twice.

Each run is a shipped document with settings, with servers and topics of its own. At the end the
storm is simulated for consumers that retry, and limits are advised for it.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadgen.behaviours.list import List
from loadgen.errors import ExitCode, writing
from loadgen.places.experiment import experiment
from loadgen.plan.group import Reader
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.summary import Summary
from loadgen.results.verdict import failures
from loadgen.studies.advise.advice import virtual_storms
from loadgen.studies.advise.bounds import splits, start
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.margins import strains
from loadgen.studies.advise.obstacles import obstacles
from loadgen.studies.advise.question import Question
from loadgen.studies.advise.search import Tries
from loadgen.studies.demo_checks import (
    Check,
    Ran,
    beside_silent,
    check_of,
    checks_between,
    grown_bytes,
)
from loadgen.studies.demo_storms import (
    CLIENT_TIMEOUT_SECONDS,
    LIMIT_MB,
    RETURNING,
    RETURNING_SECONDS,
    DemoOptions,
    Storm,
    demo_runs,
    storm_of,
)
from loadgen.studies.dry_run import LIMIT_KEYS
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.options import RunOptions
    from loadgen.studies.demo_storms import DemoRun
    from loadgen.studies.points import Experiment

SUMMARY_NAME, SUMMARY_VERSION = "summary.json", 4
SOCKET_BUFFER_BYTES = 65_536
ADVICE_GOAL = Goal(back_within_seconds=60.0)
_ADVICE_NAMESPACES = 10
"""As many stand for all, which are alike: topics that are made again take time."""
_TOLD = {"title", "verdict", "total", "reasons", "back", "servers"}
"""What ``summary.json`` has of the summary of each run."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes:
        runs: Those that are judged, in their order.
        notes: Sentences on what a reader should know of its runs.
        last_words: Sentences on consumers that retry, and the advice.
    """

    runs: Sequence[Ran]
    checks: Sequence[Check]
    notes: Sequence[str]
    last_words: Sequence[str]

    @property
    def passed(self) -> bool:
        """True if all checks did."""
        return all(each.passed for each in self.checks)

    @property
    def fine(self) -> bool:
        """The same, as the headline of its page asks for it."""
        return self.passed

    @property
    def word(self) -> str:
        """It, in a word."""
        return "passed" if self.passed else "failed"

    @property
    def count(self) -> str:
        """How many checks failed, in words."""
        return failures([each.passed for each in self.checks])

    @property
    def exit_code(self) -> ExitCode:
        """The status that the demo's process exits with: a wrong answer weighs most."""
        if any(each.summary.verdict.level == "wrong" for each in self.runs):
            return ExitCode.CORRECTNESS
        return ExitCode.PASSED if self.passed else ExitCode.THRESHOLDS


def run_demo(
    options: DemoOptions,
    say: Callable[[str], None] = lambda step: None,
    run: Experiment = experiment,
) -> DemoResult:
    """Run all, judge, and write ``summary.json``.

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
    storm, ran = storm_of(options), dict[str, Ran]()
    for each, document, how in demo_runs(options, storm):
        clients = sum(group.count for group in document.clients)
        say(f"{each.label}: {plural(clients, 'client')} {each.does}")
        ran[each.name] = _ran(each, document, how, run)
    returning = ran.pop(RETURNING.name)
    checks = [check_of(each) for each in ran.values()]
    asked_bytes, notes = options.clients * storm.answer_bytes, list[str]()
    checks += checks_between(ran, asked_bytes, measured=not options.virtual)
    say("Computing the limits under which all recover")
    words = [_returned(returning), *_advised(storm, options)]
    notes += [_rough(each, each.doubt) for each in ran.values() if each.doubt]
    result = DemoResult([*ran.values()], checks, notes, words)
    told = {
        "schema_version": SUMMARY_VERSION,
        "duration_seconds": time.monotonic() - begun,
        "topics": sum(each.topics for each in storm.shapes),
        "namespaces": len(storm.shapes),
        "clients": options.clients,
        "answer_bytes": storm.answer_bytes,
        "read_rate_bytes_per_second": options.read_rate,
        "runs": {
            name: {**each.summary.model_dump(mode="json", include=_TOLD), "beside": each.beside}
            for name, each in ran.items()
        },
        "checks": [vars(each) for each in checks],
        "passed": result.passed,
        "notes": [*notes, *words],
    }
    summary.write_text(f"{json.dumps(told, indent=2)}\n", encoding="utf-8")
    return result


def _ran(run: DemoRun, document: Document, how: RunOptions, start: Experiment) -> Ran:
    directory = start(document, replace(how, name=run.name, label=run.label))
    with Results.open(directory) as results:
        write_files(results)
        beside, grown = beside_silent(results), grown_bytes(results)
    written = (directory / "summary.json").read_text(encoding="utf-8")
    summary = Summary.model_validate_json(written)
    if summary.verdict.level == "interrupted":
        raise KeyboardInterrupt
    return Ran(run, directory, summary, beside, grown)


def _rough(ran: Ran, doubt: str) -> str:
    """Say of a run whose generator was late what that means for the demo."""
    return (
        f"“{ran.run.label}”: {doubt.rstrip('.')}. Times of this run are rough; the checks are of "
        "counts and memory, which that does not touch: the exit code is theirs, and not 98."
    )


def _returned(ran: Ran) -> str:
    """Say how many consumers that retry recover."""
    (back,) = ran.summary.back
    operations = {each.part: each.requests for each in ran.summary.splits["by-operation"]}
    lists, again = operations["list"], ran.summary.total.refused
    return (
        "Real consumers retry. The same storm with Pulsar's limits, simulated with "
        f"{plural(back.clients, 'consumer')} that restart 5 s after a refusal: "
        f"{back.back:,} recover within {RETURNING_SECONDS:g} s, after {lists:,} list requests."
        f"{' Refused consumers join the queue again, so it stays long.' if again else ''}"
    )


def _advised(storm: Storm, options: DemoOptions) -> list[str]:
    """Return which limits would bring all clients back within a minute, in a few lines."""
    read = Reader(rate=options.read_rate or None)
    once = List(name="once", count=options.clients, timeout=CLIENT_TIMEOUT_SECONDS, read=read)
    limits = Limits(heap_mb=LIMIT_MB, direct_mb=LIMIT_MB)
    question = Question(
        (once,),
        storm.shapes[:_ADVICE_NAMESPACES],
        ADVICE_GOAL,
        "pulsar",
        Setting(limits, limits),
        network_bytes=2 * SOCKET_BUFFER_BYTES,
    )
    goal, against = question.goal, obstacles(question)
    if against:
        return [f"No limits bring all clients back in Pulsar (goal: {goal}).", *against]
    tries, (as_asked, *_) = Tries(virtual_storms(math.inf), goal), strains(question)
    setting = tries.climb(start(question), splits(question)[0], [as_asked])
    told, storms = (
        goal.told(tries.outcome(question, setting)),
        plural(len(tries.done), "simulated storm"),
    )
    lines = [
        f"Limits for Pulsar, for clients that request once (goal: {goal}), computed, then checked "
        f"by {storms}: {told}. Not confirmed by a real storm: leave room above them."
    ]
    for server, keys in setting.keys().items():
        lines.append(f"{server}.conf: {', '.join(f'{key}={keys[key]}' for key in LIMIT_KEYS)}")
    lines.append(
        "`loadgen advise` finds all keys for your cluster, with room for growth and slow servers."
    )
    return lines
