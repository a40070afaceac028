"""The demo: the same restart storm three times, and one client that reads nothing, twice.

Each run is a shipped document with settings, with servers and topics of its own. At the end the
storm is simulated for consumers that retry, and limits are advised for it. With an
operator's own topics or configuration the same storms are a rehearsal of that cluster.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.behaviours.discover import Discover
from loadgen.behaviours.list import List
from loadgen.documents.model import Topics
from loadgen.documents.reading import read_document
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.experiment import experiment
from loadgen.places.launcher import ServerFiles
from loadgen.places.options import RunOptions
from loadgen.plan.group import Reader
from loadgen.results.expectations import parse_expectation
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.verdict import Level, worst_code
from loadgen.studies.advise.advice import quick_advice
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape, Question
from loadgen.studies.advise.report import verdict as advised_in_words
from loadgen.studies.demo_checks import (
    Check,
    Figures,
    StormSize,
    demo_checks,
    figures_of,
    hidden_storm,
    own_checks,
    stuck_checks,
    stuck_phase,
)
from loadgen.topics.reading import OwnTopics
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from loadgen.documents.model import Document, Role
    from loadgen.errors import ExitCode
    from loadgen.places.operator_files import OwnCluster, OwnServer
    from loadgen.places.options import Place
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.points import Experiment

LIMIT_MB, SOCKET_BUFFER_BYTES, SEED = 50, 65_536, 7
CLIENT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS = 120.0, 86_400.0
TOPICS_PER_NAMESPACE, SUMMARY_NAME = 10_000, "summary.json"
RUN_DIRECTORIES = "runs"
RETURNING_SECONDS = 60.0
"""The first are refused after 25 s; so long until they have asked again, and wait once more."""
ADVICE_GOAL = Goal(back_within_seconds=60.0)
_ADVICE_SECONDS = 8.0
_ADVICE_NAMESPACES = 10
"""As many stand for all, which are alike: topics that are made again take time."""
_LIMITS = ("maxTopicListInFlightHeapMemSizeMB", "maxTopicListInFlightDirectMemSizeMB")
_PULSARS_LIMIT = "100"


@dataclass(frozen=True)
class DemoRun:
    """One run. ``limit_mb`` is for heap and direct, on each of its servers; 0 is off."""

    name: str
    label: str
    profile: str
    limit_mb: int = LIMIT_MB


STORMS = (
    DemoRun("off", "Limits off", "pulsar", 0),
    DemoRun("pulsar", "Limits on, as in Pulsar", "pulsar"),
    DemoRun("floodgate", "Limits on, Floodgate", "floodgate"),
)
STUCK = (
    DemoRun("stuck-pulsar", "As in Pulsar", "pulsar"),
    DemoRun("stuck-floodgate", "Floodgate", "floodgate"),
)
RETURNING = DemoRun("pulsar-returning", "As in Pulsar, clients retry", "pulsar")


@dataclass(frozen=True)
class DemoOptions:
    """The options of the demo.

    Attributes:
        topics: How many are made, or an operator's own.
        namespaces: Of those that are made; None: one for ten thousand topics.
        listed: An operator's namespaces that clients list; none: the largest.
        clients: Connections, each of which asks once.
        read_rate: Bytes a second that each client reads; 0 is unlimited.
        run: How storms run: where, in how many tasks, on which Spark.
        own: An operator's servers; None: the demo's own.
    """

    topics: int | OwnTopics = 1_000_000
    namespaces: int | None = None
    listed: tuple[str, ...] = ()
    clients: int = 1000
    read_rate: float = 100_000.0
    out: Path = Path("out/demo")
    run: RunOptions = field(default_factory=RunOptions)
    own: OwnCluster | None = None

    @property
    def rehearsal(self) -> bool:
        """True if something of it is an operator's."""
        return self.own is not None or not isinstance(self.topics, int)


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes:
        storms, stuck: The figures of each run of both parts, by its name.
        directories: Of all runs, for a page.
        notes: Sentences on what differs from an operator's cluster.
        last_words: Sentences on consumers that retry, and the advice.
    """

    storms: Mapping[str, Figures]
    stuck: Mapping[str, Figures]
    checks: Sequence[Check]
    directories: Sequence[Path]
    notes: Sequence[str]
    last_words: Sequence[str]

    @property
    def exit_code(self) -> ExitCode:
        """The status that the demo's process exits with: a wrong answer weighs most."""
        verdicts = [each.verdict for each in (*self.storms.values(), *self.stuck.values())]
        wrong = [each for each in verdicts if each.level is Level.WRONG]
        failed = not all(each.passed for each in self.checks)
        return worst_code(wrong) if wrong or not failed else Level.MISSED.value[0]


@dataclass(frozen=True)
class _Storm:
    """What all storms share: topics as a document names them, and what is listed of them."""

    topics: Topics
    shapes: tuple[NamespaceShape, ...]
    chosen: tuple[int, ...] | None = None

    @property
    def answer_bytes(self) -> int:
        return sum(each.answer_bytes for each in self.shapes) // len(self.shapes)


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
    summary = options.out / SUMMARY_NAME
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        summary.unlink(missing_ok=True)  # of an earlier demo, which must not pass for this one
    except OSError as error:
        raise LoadgenError(
            f"--out {options.out} cannot be written ({error.strerror}); choose another directory"
        ) from error
    storm = _topics(options)
    storms = _storms(storm, options, say, run)
    stuck, words = {}, []
    if not options.rehearsal:
        stuck = _beside_a_silent_one(options, say, run)
        words = [_returning(storm, options, say, run), *_advised(storm, options, say)]
    size = StormSize(options.clients, storm.answer_bytes)
    notes = options.own.notes() if options.own else []
    if options.rehearsal:
        checks, hidden = own_checks(storms), hidden_storm(storms["off"], size)
        notes += [hidden] if hidden else []
    else:
        checks = demo_checks(storms, size) + stuck_checks(stuck)
    directories = [each.directory for each in (*storms.values(), *stuck.values())]
    result = DemoResult(storms, stuck, checks, directories, notes, words)
    summary.write_text(f"{json.dumps(_told(result, options, storm), indent=2)}\n", encoding="utf-8")
    return result


def _storms(
    storm: _Storm, options: DemoOptions, say: Callable[[str], None], run: Experiment
) -> dict[str, Figures]:
    found = {}
    for each in STORMS:
        say(f"{each.label}: {plural(options.clients, 'client')} list topics")
        how = replace(options.run, files=files_of(each, options.own))
        found[each.name] = _ran(storm_document(each, storm, options), each, how, options, run)
    return found


def _beside_a_silent_one(
    options: DemoOptions, say: Callable[[str], None], run: Experiment
) -> dict[str, Figures]:
    """Run the second part, in plain processes whatever drives the storms."""
    place: Place = "virtual" if options.run.place == "virtual" else "processes"
    how = replace(options.run, spark=None, master=None, place=place, tasks=1)
    found = {}
    for each in STUCK:
        say(f"{each.label}: one client reads nothing")
        document = read_document("stuck", [f"servers.profile={each.profile}"], parse_expectation)
        found[each.name] = _ran(document, each, how, options, run)
    return found


def _told(result: DemoResult, options: DemoOptions, storm: _Storm) -> dict[str, object]:
    return {
        "schema_version": 2,
        "topics": sum(each.topics for each in storm.shapes),
        "namespaces": len(storm.shapes),
        "clients": options.clients,
        "answer_bytes": storm.answer_bytes,
        "read_rate_bytes_per_second": options.read_rate,
        "runs": {name: each.told() for name, each in {**result.storms, **result.stuck}.items()},
        "checks": [vars(each) for each in result.checks],
        "passed": all(each.passed for each in result.checks),
        "notes": [*result.notes, *result.last_words],
    }


# -- topics ---------------------------------------------------------------------------------------


def _topics(options: DemoOptions) -> _Storm:
    if isinstance(options.topics, OwnTopics):
        own = options.topics
        names = sorted(own.namespaces)
        chosen = own.chosen(options.listed)
        shapes = tuple(NamespaceShape(n, e.topics, e.name_bytes) for n, e in chosen.items())
        places = tuple(names.index(name) for name in chosen)
        return _Storm(Topics(corpus=str(own.path)), shapes, places)
    namespaces = options.namespaces or max(1, math.ceil(options.topics / TOPICS_PER_NAMESPACE))
    each = options.topics // namespaces
    topics = Topics(namespaces=namespaces, per_namespace=each, seed=SEED)
    size = each * topics.mean_name_bytes
    return _Storm(topics, tuple(NamespaceShape(n.name, each, size) for n in topics.expected()))


_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmM]?)")
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def parse_topics(text: str) -> int | None:
    """Return the number that ``--topics`` gives, ``1M`` for example; None: it names a file.

    Raises:
        UsageError: The number is not a whole one above 0.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    topics = round(float(found[1]) * _FACTORS[found[2].lower()], 6)
    if topics < 1 or topics != int(topics):
        raise UsageError(f"--topics {text} is not a whole number of topics above 0")
    return int(topics)


# -- documents ------------------------------------------------------------------------------------


def storm_document(run: DemoRun, storm: _Storm, options: DemoOptions) -> Document:
    """Return the shipped storm with the size of the demo, and the limits and profile of a run."""
    reading = storm.answer_bytes / options.read_rate if options.read_rate else 0.0
    timeout = min(CLIENT_TIMEOUT_SECONDS + reading, LONGEST_TIMEOUT_SECONDS)
    limit = str(run.limit_mb)
    document = read_document(
        "storm",
        [
            f"servers.profile={run.profile}",
            *(f"servers.{role}.{key}={limit}" for role in ("broker", "proxy") for key in _LIMITS),
            f"clients.all.count={options.clients}",
            f"clients.all.read.rate={options.read_rate}",
            f"clients.all.timeout={timeout}",
            f"phases.measure={timeout}",
            # Its expectations are those of Floodgate: the demo judges what each profile made of it.
            "expect=[]",
        ],
        parse_expectation,
    )
    update: dict[str, object] = {"topics": storm.topics}
    if storm.chosen is not None:
        update["clients"] = tuple(_on_each(document, storm.chosen))
    if options.own is not None and options.own.proxy is None:
        update["servers"] = document.servers.model_copy(update={"proxy": None})
    return document.model_copy(update=update)


def _on_each(document: Document, chosen: Sequence[int]) -> Iterator[object]:
    """Yield a group for each of some namespaces; they share the clients."""
    (group,) = document.clients
    each, more = divmod(group.count, len(chosen))
    for number, place in enumerate(chosen):
        count, name = each + (number < more), f"all-{number}" if len(chosen) > 1 else group.name
        if count:
            where = {"namespaces": (place, place + 1), "count": count, "name": name}
            yield group.model_copy(update=where)


def files_of(run: DemoRun, own: OwnCluster | None) -> ServerFiles:
    """Return an operator's files as a run has them: with their limits, or without any."""
    if own is None:
        return ServerFiles()
    servers: dict[Role, OwnServer] = {"broker": own.broker}
    if own.proxy is not None:
        servers["proxy"] = own.proxy
    for role, server in servers.items():
        keys = {key: value for key, value in server.keys.items() if key != "floodgateProfile"}
        if run.limit_mb:
            keys = {**dict.fromkeys(_LIMITS, _PULSARS_LIMIT), **keys}
        else:  # What the file does not say is the document's: no limits.
            keys = {key: value for key, value in keys.items() if key not in _LIMITS}
        servers[role] = replace(server, keys=keys)
    return ServerFiles(**servers)


def returning_document(storm: _Storm, options: DemoOptions) -> Document:
    """Return the storm of Java consumers whose programs restart when they are refused.

    Clients that request once disconnect after a refusal, and the queue becomes shorter. These
    consumers retry after five seconds, so it does not: there are more requests, and hardly more
    answers.
    """
    document = storm_document(RETURNING, storm, options)
    (group,) = document.clients
    returning = Discover(
        name="java-watch", library="java-watch", count=group.count, restart=5.0, read=group.read
    )
    phases = document.phases.model_copy(update={"measure": RETURNING_SECONDS, "drain": 0.0})
    return document.model_copy(update={"clients": (returning,), "phases": phases})


# -- runs -----------------------------------------------------------------------------------------


def _ran(
    document: Document, run: DemoRun, how: RunOptions, options: DemoOptions, start: Experiment
) -> Figures:
    out = options.out / RUN_DIRECTORIES
    clients = sum(group.count for group in document.clients)
    tasks = min(how.tasks or 2, clients)
    how = replace(how, out=out, name=run.name, label=run.label, tasks=tasks)
    with Results.open(start(document, how)) as results:
        found = figures_of(run.label, results, write_files(results))
        if document.name == "stuck":
            found = replace(found, phase=stuck_phase(results))
    if found.verdict.level is Level.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def _returning(
    storm: _Storm, options: DemoOptions, say: Callable[[str], None], run: Experiment
) -> str:
    say(f"Simulated: {plural(options.clients, 'consumer')} that retry")
    how = RunOptions(
        out=options.out / RUN_DIRECTORIES,
        name=RETURNING.name,
        label=RETURNING.label,
        place="virtual",
    )
    with Results.open(run(returning_document(storm, options), how)) as results:
        write_files(results)
        (back,) = results.query("back")
        lists = results.value("SELECT count(*) FROM requests WHERE operation = 'list'")
        again = results.value("SELECT count(*) FROM events WHERE what = 'restarted'")
    why = "Refused consumers join the queue again, so it stays long." if again else ""
    return (
        "Real consumers retry. The same storm with Pulsar's limits, simulated with "
        f"{plural(back['clients'], 'consumer')} that restart 5 s after a refusal: "
        f"{back['back']:,} recover within {RETURNING_SECONDS:g} s, after {lists:,} list requests. "
        f"{why}".rstrip()
    )


def advice_for(storm: _Storm, options: DemoOptions) -> Advice:
    """Return which limits would bring all of the demo's clients back within a minute."""
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
    found = quick_advice(question)
    return replace(found, not_confirmed="`loadgen advise` does that")


def _advised(storm: _Storm, options: DemoOptions, say: Callable[[str], None]) -> list[str]:
    """Return the advice in a few lines: the verdict, and each server's memory limits."""
    say("Computing the limits under which all recover")
    advice = advice_for(storm, options)
    lines = [
        f"Advised limits for Pulsar, for clients that request once (goal: {advice.question.goal}). "
        f"{advised_in_words(advice)} Both met the goal on a quiet machine: "
        "leave room above them."
    ]
    for server in advice.setting.servers if advice.setting else ():
        keys = advice.setting.of(server).keys() if advice.setting else {}
        lines.append(f"{server}.conf: {', '.join(f'{key}={keys[key]}' for key in _LIMITS)}")
    if advice.setting is not None:
        lines.append(
            "`loadgen advise` finds all keys for your cluster, what each costs, and what a "
            "smaller value would do."
        )
    return [*lines, *advice.obstacles]
