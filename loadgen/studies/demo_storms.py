"""What the demo runs: its options, and the documents of its storms and silent clients."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.behaviours.discover import Discover
from loadgen.documents.model import Topics
from loadgen.documents.reading import read_document
from loadgen.errors import UsageError
from loadgen.places.launcher import ServerFiles
from loadgen.places.options import RunOptions
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.question import NamespaceShape
from loadgen.studies.dry_run import LIMIT_KEYS
from loadgen.topics.reading import OwnTopics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.operator_files import OwnCluster, OwnServer

LIMIT_MB, SEED, TOPICS_PER_NAMESPACE = 50, 7, 10_000
CLIENT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS = 120.0, 86_400.0
RETURNING_SECONDS = 60.0
"""The first are refused after 25 s; so long until they have asked again, and wait once more."""
_PULSARS_LIMIT = "100"
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmM]?)")
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


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
class Storm:
    """What all storms share: topics as a document names them, and what is listed of them."""

    topics: Topics
    shapes: tuple[NamespaceShape, ...]
    chosen: tuple[int, ...] | None = None

    @property
    def answer_bytes(self) -> int:
        """Mean size of an answer."""
        return sum(each.answer_bytes for each in self.shapes) // len(self.shapes)


def storm_of(options: DemoOptions) -> Storm:
    """Return the storm that options ask for."""
    if isinstance(options.topics, OwnTopics):
        own = options.topics
        names, chosen = sorted(own.namespaces), own.chosen(options.listed)
        shapes = tuple(NamespaceShape(n, e.topics, e.name_bytes) for n, e in chosen.items())
        places = tuple(names.index(name) for name in chosen)
        return Storm(Topics(corpus=str(own.path)), shapes, places)
    namespaces = options.namespaces or max(1, math.ceil(options.topics / TOPICS_PER_NAMESPACE))
    each = options.topics // namespaces
    topics = Topics(namespaces=namespaces, per_namespace=each, seed=SEED)
    size = each * topics.mean_name_bytes
    return Storm(topics, tuple(NamespaceShape(n.name, each, size) for n in topics.expected()))


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


def storm_document(run: DemoRun, storm: Storm, options: DemoOptions) -> Document:
    """Return the shipped storm with the size of the demo, and the limits and profile of a run."""
    reading = storm.answer_bytes / options.read_rate if options.read_rate else 0.0
    timeout = min(CLIENT_TIMEOUT_SECONDS + reading, LONGEST_TIMEOUT_SECONDS)
    limits = [f"{role}.{key}" for role in ("broker", "proxy") for key in LIMIT_KEYS]
    settings = [
        f"servers.profile={run.profile}",
        *(f"servers.{each}={run.limit_mb}" for each in limits),
        f"clients.all.count={options.clients}",
        f"clients.all.read.rate={options.read_rate}",
        f"clients.all.timeout={timeout}",
        f"phases.measure={timeout}",
        # Its expectations are those of Floodgate: the demo judges what each profile made of it.
        "expect=[]",
        *(["servers.proxy=null"] if options.own is not None and options.own.proxy is None else []),
    ]
    document = read_document("storm", settings, parse_expectation)
    clients = document.clients if storm.chosen is None else tuple(_on_each(document, storm.chosen))
    return document.model_copy(update={"topics": storm.topics, "clients": clients})


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

    def keyed(server: OwnServer) -> OwnServer:
        limits = {key: server.keys.get(key, _PULSARS_LIMIT) for key in LIMIT_KEYS}
        others = {
            k: v for k, v in server.keys.items() if k not in (*LIMIT_KEYS, "floodgateProfile")
        }
        # In a run without limits the document says so.
        return replace(server, keys={**others, **(limits if run.limit_mb else {})})

    if own is None:
        return ServerFiles()
    return ServerFiles(keyed(own.broker), *([keyed(own.proxy)] if own.proxy else []))


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
    return document.model_copy(update={"clients": (returning,), "phases": phases})
