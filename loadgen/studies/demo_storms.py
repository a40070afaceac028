"""What the demo runs: its options, and the document of each run, with what is expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loadgen.behaviours.discover import Discover
from loadgen.documents.model import Topics
from loadgen.documents.reading import read_document
from loadgen.places.options import RunOptions
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.limits import limits_of
from loadgen.studies.advise.namespaces import shapes_of_topics
from loadgen.studies.dry_run import LIMIT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.documents.model import Document, Servers
    from loadgen.places.options import Place
    from loadgen.studies.advise.question import NamespaceShape

LIMIT_MB, SEED, TOPICS_PER_NAMESPACE = 50, 7, 10_000
CLIENT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS = 120.0, 86_400.0
RETURNING_SECONDS = 60.0
"""The first are refused after 25 s; so long until they have asked again, and wait once more."""
RUN_DIRECTORIES = "runs"
_FAILED_NONE, _ANSWERED_ALL = "requests.failed.rate == 0%", "requests.answered.rate == 100%"
_BROKER_GROWS = "broker.resident.rise <= 64MiB"


class DemoRun(NamedTuple):
    """One run. ``limit_mb`` is for heap and direct, on each of its servers; 0 is off."""

    name: str
    label: str
    does: str
    profile: str
    limit_mb: int = LIMIT_MB


_ALL_AT_ONCE, _BESIDE = "list topics at the same moment", "list topics, one of which reads none"
STORMS = (
    DemoRun("off", "Limits off", _ALL_AT_ONCE, "pulsar", 0),
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
    """The options of the demo.

    Attributes:
        topics: How many are made.
        namespaces: None: one for ten thousand topics.
        clients: Connections, each of which asks once.
        read_rate: Bytes a second that each client reads; 0 is unlimited.
        run: How storms run: where, in how many tasks, on which Spark.
    """

    topics: int = 1_000_000
    namespaces: int | None = None
    clients: int = 1000
    read_rate: float = 100_000.0
    out: Path = Path("out/demo")
    run: RunOptions = field(default_factory=RunOptions)

    @property
    def virtual(self) -> bool:
        """True if no process is started."""
        return self.run.place == "virtual"


@dataclass(frozen=True)
class Storm:
    """What all storms share: topics as a document names them, and what is listed of them."""

    topics: Topics
    shapes: tuple[NamespaceShape, ...]

    @property
    def answer_bytes(self) -> int:
        """Mean size of an answer."""
        return sum(each.answer_bytes for each in self.shapes) // len(self.shapes)


def storm_of(options: DemoOptions) -> Storm:
    """Return the storm that options ask for."""
    namespaces = options.namespaces or max(1, math.ceil(options.topics / TOPICS_PER_NAMESPACE))
    each = options.topics // namespaces
    topics = Topics(namespaces=namespaces, per_namespace=each, seed=SEED)
    return Storm(topics, shapes_of_topics(topics))


def demo_runs(options: DemoOptions, storm: Storm) -> Iterator[tuple[DemoRun, Document, RunOptions]]:
    """Yield each run with its document, and how it runs."""
    how = replace(options.run, out=options.out / RUN_DIRECTORIES)
    for run in STORMS:
        yield run, storm_document(run, storm, options), how
    # In a plain process whatever drives the storms.
    place: Place = "virtual" if options.virtual else "processes"
    how = replace(how, spark=None, master=None, place=place, tasks=1)
    for run in STUCK:
        yield run, stuck_document(run), how
    yield RETURNING, returning_document(storm, options), replace(how, place="virtual")


def storm_document(run: DemoRun, storm: Storm, options: DemoOptions) -> Document:
    """Return the shipped storm with the size of the demo, and the limits and profile of a run."""
    reading = storm.answer_bytes / options.read_rate if options.read_rate else 0.0
    timeout = min(CLIENT_TIMEOUT_SECONDS + reading, LONGEST_TIMEOUT_SECONDS)
    limits = [f"{role}.{key}" for role in ("broker", "proxy") for key in LIMIT_KEYS]
    settings = [
        f"servers.profile={run.profile}",
        *(f"servers.{each}={run.limit_mb}" for each in limits),
        f"clients.all.count={options.clients}",
        f"clients.all.read.rate={options.read_rate or 'null'}",
        f"clients.all.timeout={timeout}",
        f"phases.measure={timeout}",
    ]
    document = read_document("storm", settings, parse_expectation)
    expect = tuple(_expected(run, document.servers, options))
    return document.model_copy(update={"topics": storm.topics, "expect": expect})


def _expected(run: DemoRun, servers: Servers, options: DemoOptions) -> Iterator[str]:
    """Yield what is expected of a storm."""
    judged = run.profile == "floodgate"
    yield _ANSWERED_ALL if judged else _FAILED_NONE
    for role, keys in (("broker", servers.broker), ("proxy", servers.proxy)):
        limits = limits_of(keys or dict.fromkeys(LIMIT_KEYS, "0"))
        for kind, limit in (("heap", limits.heap_mb), ("direct", limits.direct_mb)):
            if limit > 0:
                yield f"{role}.{kind}.used.max <= limit"
    # In virtual time no process has a memory of its own.
    if judged and not options.virtual:
        yield _BROKER_GROWS


def stuck_document(run: DemoRun) -> Document:
    """Return the shipped client that reads nothing; beside it Pulsar answers nobody."""
    document = read_document("stuck", [f"servers.profile={run.profile}"], parse_expectation)
    if run.profile == "floodgate":
        expect = (*document.expect, "clients{group=healthy}.reconnects.max == 0")
    else:
        expect = ("healthy.list.failed.rate == 0%", "broker.direct.used.max <= limit")
    return document.model_copy(update={"expect": expect})


def returning_document(storm: Storm, options: DemoOptions) -> Document:
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
    return document.model_copy(update={"clients": (returning,), "phases": phases, "expect": ()})
