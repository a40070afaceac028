"""``loadgen demo``: runs a restart storm three times, and twice a client that never reads.

Each run is a shipped scenario with some settings, and has servers and topics of its own. At the end
the storm is simulated for consumers with retries, and limits are advised for it.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loadgen.behaviours.discover import Discover
from loadgen.behaviours.list import List
from loadgen.documents.model import Topics
from loadgen.documents.reading import read_document
from loadgen.errors import ExitCode, writing
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.plan.group import Reader
from loadgen.results.expectations import parse_expectation
from loadgen.results.verdict import failures
from loadgen.studies.advise.advice import virtual_storms
from loadgen.studies.advise.bounds import splits, start
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import KEYS, Limits, Setting
from loadgen.studies.advise.namespaces import shapes_of_topics
from loadgen.studies.advise.obstacles import obstacles
from loadgen.studies.advise.question import Question
from loadgen.studies.advise.search import Tries
from loadgen.studies.demo_checks import Check, DemoRun, Ran, check_of, checks_between
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.options import Place
    from loadgen.studies.advise.question import NamespaceShape
    from loadgen.studies.points import Experiment

LIMIT_MB, SEED, TOPICS_PER_NAMESPACE = 50, 7, 10_000
CLIENT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS = 120.0, 86_400.0
RETURNING_SECONDS = 60.0
"""Seconds in which the first clients are refused after 25 s, retry, and wait once more."""
_LIMIT_KEYS = (KEYS["heap_mb"], KEYS["direct_mb"])
SUMMARY_NAME, SUMMARY_VERSION = "summary.json", 4
SOCKET_BUFFER_BYTES = 65_536
ADVICE_GOAL = Goal(back_within_seconds=60.0)
_ADVICE_NAMESPACES = 10
"""Maximum number of namespaces for the demo's advice: all are alike, and topics take time."""
_TOLD = {"title", "verdict", "total", "reasons", "back", "servers"}
"""Parts of each run's summary kept in ``summary.json``."""
_ALL_AT_ONCE, _BESIDE = "list topics at the same moment", "list topics, one of which reads none"
STORMS = (
    DemoRun("off", "Limits off", _ALL_AT_ONCE, "pulsar"),
    DemoRun("pulsar", "Limits on, as in Pulsar", _ALL_AT_ONCE, "pulsar"),
    DemoRun("floodgate", "Limits on, Floodgate", _ALL_AT_ONCE, "floodgate"),
)
STUCK = (
    DemoRun("stuck-pulsar", "As in Pulsar", _BESIDE, "pulsar"),
    DemoRun("stuck-floodgate", "Floodgate", _BESIDE, "floodgate"),
)
RETURNING = DemoRun("pulsar-returning", "As in Pulsar, clients retry", "retry, simulated", "pulsar")


@dataclass(frozen=True)
class DemoOptions:
    """The options of ``loadgen demo``.

    Attributes:
        topics: Number of topics to make.
        namespaces: Number of namespaces; None: one for ten thousand topics.
        clients: Number of connections, which send one request each.
        read_rate: Bytes a second that each client reads; 0 is unlimited.
        place: The place where the storms run; the other runs are in processes unless all is
            virtual.
    """

    topics: int = 1_000_000
    namespaces: int | None = None
    clients: int = 1000
    read_rate: float = 100_000.0
    out: Path = Path("out/demo")
    place: Place = "processes"

    @property
    def virtual(self) -> bool:
        """True if all runs are simulated, so that no server process is started."""
        return self.place == "virtual"

    @cached_property
    def made(self) -> Topics:
        """The topics that each storm of the demo generates."""
        namespaces = self.namespaces or max(1, math.ceil(self.topics / TOPICS_PER_NAMESPACE))
        each = self.topics // namespaces
        return Topics(namespaces=namespaces, per_namespace=each, seed=SEED)

    @cached_property
    def shapes(self) -> tuple[NamespaceShape, ...]:
        """The sizes of the namespaces that clients list."""
        return shapes_of_topics(self.made)

    @property
    def answer_bytes(self) -> int:
        """The mean size of a list answer, in bytes."""
        return sum(each.answer_bytes for each in self.shapes) // len(self.shapes)


class DemoResult(NamedTuple):
    """The result of the demo: its runs, checks and sentences.

    Attributes:
        runs: The judged runs, in order.
        notes: Sentences on runs whose times are only rough.
        last_words: Sentences on consumers with retries, and on the advised limits.
    """

    runs: Sequence[Ran]
    checks: Sequence[Check]
    notes: Sequence[str]
    last_words: Sequence[str]

    @property
    def fine(self) -> bool:
        """True if all checks passed."""
        return all(each.passed for each in self.checks)

    @property
    def headline(self) -> str:
        """A sentence that says whether the demo passed, and how many checks failed."""
        count = failures([each.passed for each in self.checks])
        return f"{'passed' if self.fine else 'failed'}: {count}"

    @property
    def exit_code(self) -> ExitCode:
        """The demo's exit code; a wrong answer matters more than a failed check."""
        if any(each.summary.verdict.level == "wrong" for each in self.runs):
            return ExitCode.CORRECTNESS
        return ExitCode.PASSED if self.fine else ExitCode.THRESHOLDS


# -- the document of each run ---------------------------------------------------------------------


def demo_runs(options: DemoOptions) -> list[tuple[DemoRun, Document, Place]]:
    """Return the planned runs of the demo, each with its scenario and the place where it runs."""
    # In a plain process, whatever the place of the storms.
    beside: Place = "virtual" if options.virtual else "processes"
    return [
        *((run, storm_document(run, options), options.place) for run in STORMS),
        *((run, stuck_document(run), beside) for run in STUCK),
        (RETURNING, returning_document(options), "virtual"),
    ]


def storm_document(run: DemoRun, options: DemoOptions) -> Document:
    """Return the shipped scenario ``storm``, adapted to the demo's size and a run's limits."""
    reading = options.answer_bytes / options.read_rate if options.read_rate else 0.0
    timeout = min(CLIENT_TIMEOUT_SECONDS + reading, LONGEST_TIMEOUT_SECONDS)
    limit_mb, judged = 0 if run.name == "off" else LIMIT_MB, run.profile == "floodgate"
    limits = [f"{role}.{key}" for role in ("broker", "proxy") for key in _LIMIT_KEYS]
    settings = [
        f"servers.profile={run.profile}",
        *(f"servers.{each}={limit_mb}" for each in limits),
        f"clients.all.count={options.clients}",
        f"clients.all.read.rate={options.read_rate or 'null'}",
        f"clients.all.timeout={timeout}",
        f"phases.measure={timeout}",
    ]
    expect = ["requests.answered.rate == 100%" if judged else "requests.failed.rate == 0%"]
    if limit_mb:
        servers, kinds = ("broker", "proxy"), ("heap", "direct")
        expect += [f"{server}.{kind}.used.max <= limit" for server in servers for kind in kinds]
    if judged and not options.virtual:  # In virtual time servers share the memory of this process.
        expect.append("broker.resident.rise <= 64MiB")
    document = read_document("storm", settings, parse_expectation)
    return document.model_copy(update={"topics": options.made, "expect": tuple(expect)})


def stuck_document(run: DemoRun) -> Document:
    """Return the shipped scenario ``stuck``, in which one client never reads.

    That client blocks all others.
    """
    document = read_document("stuck", [f"servers.profile={run.profile}"], parse_expectation)
    if run.profile == "floodgate":
        expect = (*document.expect, "clients{group=healthy}.reconnects.max == 0")
    else:
        expect = ("healthy.list.failed.rate == 0%", "broker.direct.used.max <= limit")
    return document.model_copy(update={"expect": expect})


def returning_document(options: DemoOptions) -> Document:
    """Return the storm's scenario with Java consumers that restart when a request is refused.

    Clients that send a single request disconnect after a refusal, and the queue becomes shorter.
    These consumers retry after five seconds, and the queue stays long: there are more requests, and
    hardly more answers.
    """
    document = storm_document(RETURNING, options)
    (group,) = document.clients
    returning = Discover(
        name="java-watch", library="java-watch", count=group.count, restart=5.0, read=group.read
    )
    phases = document.phases.model_copy(update={"measure": RETURNING_SECONDS, "drain": 0.0})
    return document.model_copy(update={"clients": (returning,), "phases": phases, "expect": ()})


# -- the demo -------------------------------------------------------------------------------------


def run_demo(
    options: DemoOptions,
    say: Callable[[str], None] = lambda step: None,
    run: Experiment = experiment,
) -> DemoResult:
    """Run the whole demo, judge its runs, and write ``summary.json``.

    Args:
        options: The size of the demo, and the place where it runs.
        say: Called with a line about each run before it begins.
        run: Runs a scenario document.

    Raises:
        LoadgenError: A server did not start, or a storm could not be run.
        KeyboardInterrupt: The demo was interrupted: half a demo has no result.
    """
    begun, summary = time.monotonic(), options.out / SUMMARY_NAME
    with writing(options.out):
        summary.unlink(missing_ok=True)  # an earlier demo's must not pass for the new one
    ran: dict[str, Ran] = {}
    for each, document, place in demo_runs(options):
        clients = sum(group.count for group in document.clients)
        say(f"{each.label}: {plural(clients, 'client')} {each.does}")
        how = RunOptions(options.out / "runs", each.name, each.label, place=place)
        ran[each.name] = Ran.of(each, run(document, how))
    returning = ran.pop(RETURNING.name)
    checks = [check_of(each) for each in ran.values()]
    asked_bytes = options.clients * options.answer_bytes
    checks += checks_between(ran, asked_bytes, measured=not options.virtual)
    say("Computing the limits under which all recover")
    words = [_returned(returning), *_advised(options)]
    notes = [each.doubt for each in ran.values() if each.doubt]
    result = DemoResult([*ran.values()], checks, notes, words)
    told = {
        "schema_version": SUMMARY_VERSION,
        "duration_seconds": time.monotonic() - begun,
        "topics": sum(each.topics for each in options.shapes),
        "namespaces": len(options.shapes),
        "clients": options.clients,
        "answer_bytes": options.answer_bytes,
        "read_rate_bytes_per_second": options.read_rate,
        "runs": {
            name: {**each.summary.model_dump(mode="json", include=_TOLD), "beside": each.beside}
            for name, each in ran.items()
        },
        "checks": [vars(each) for each in checks],
        "passed": result.fine,
        "notes": [*notes, *words],
    }
    summary.write_text(f"{json.dumps(told, indent=2)}\n", encoding="utf-8")
    return result


def _returned(ran: Ran) -> str:
    """Return a sentence on the number of retrying consumers that get their list."""
    (back,) = ran.summary.back
    operations = {each.part: each.requests for each in ran.summary.splits["by-operation"]}
    lists, again = operations["list"], ran.summary.total.refused
    return (
        "Real consumers retry. The same storm with Pulsar's limits, simulated with "
        f"{plural(back.clients, 'consumer')} that restart 5 s after a refusal: "
        f"{back.back:,} recover within {RETURNING_SECONDS:g} s, after {lists:,} list requests."
        f"{' Refused consumers join the queue again, so it stays long.' if again else ''}"
    )


def _advised(options: DemoOptions) -> list[str]:
    """Return sentences on limits with which all clients would recover within a minute."""
    read = Reader(rate=options.read_rate or None)
    once = List(name="once", count=options.clients, timeout=CLIENT_TIMEOUT_SECONDS, read=read)
    limits = Limits(heap_mb=LIMIT_MB, direct_mb=LIMIT_MB)
    question = Question(
        (once,),
        options.shapes[:_ADVICE_NAMESPACES],
        ADVICE_GOAL,
        "pulsar",
        Setting(limits, limits),
        network_bytes=2 * SOCKET_BUFFER_BYTES,
    )
    goal, against = question.goal, obstacles(question)
    if against:
        return [f"No limits bring all clients back in Pulsar (goal: {goal}).", *against]
    tries = Tries(virtual_storms(math.inf), goal)
    setting = tries.climb(start(question), splits(question)[0], [question])
    told = goal.told(tries.outcome(question, setting))
    storms = plural(len(tries.done), "simulated storm")
    return [
        f"Limits for Pulsar, for clients that request once (goal: {goal}), computed, then checked "
        f"by {storms}: {told}. Not confirmed by a real storm: leave room above them.",
        *(
            f"{server}.conf: {', '.join(f'{key}={keys[key]}' for key in _LIMIT_KEYS)}"
            for server, keys in setting.keys().items()
        ),
        "`loadgen advise` finds all keys for your cluster, with room for growth and slow servers.",
    ]
