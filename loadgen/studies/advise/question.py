"""The question of an advice: topics, clients and goal; its document, and what a run of it was."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from limiter.memory.size_estimate import BYTES_PER_NAME, FIRST_ESTIMATE_BYTES
from loadgen.access import admin_of
from loadgen.behaviours.discover import Discover
from loadgen.engine.link import RUN_ENDED
from loadgen.errors import UsageError
from loadgen.results.questions import QUERIES
from loadgen.results.results import Results
from loadgen.topics.calls import admin_errors
from loadgen.topics.corpus import open_corpus
from loadgen.topics.manifest import MANIFEST_NAME
from loadgen.topics.plan import SHORTEST_NAME_BYTES
from loadgen.topics.reading import read_own_topics
from loadgen.units import MB_BYTES, format_bytes, format_seconds
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.documents.model import Document, Profile

LONGEST_SECONDS = 86_400.0
NEVER = -1.0
"""The speed of a reader that reads nothing."""
ONCE = "once"
"""Clients that list once and never try again; all others are libraries that discover topics."""
WATCHING = frozenset({"polite", "java-watch"})
"""Families whose clients ask for a watch behind their first list."""
MOST_SIZES = 16
"""So many sizes are kept as they are; of more, so many groups have two sizes each at most."""
RECEIVE_BUFFER_BYTES, LEAST_BUFFER_BYTES = 65_536, 4_096
LONGEST_NAME_BYTES, LONGEST_ONE_BYTE_LENGTH, ANSWER_HEAD_BYTES = 512, 127, 40
FASTEST_STARTS = 1_000_000
"""Starts a second; more of them are at once."""
_ALIKE, _WIDTH = 0.02, 100
_LONGER = 1.5
"""A try lasts so many times the goal's time, to see by how much a goal is missed."""
_CALL_SECONDS, _CALLS_AT_ONCE, _NAMES_SHOWN = 60.0, 8, 3


@dataclass(frozen=True)
class Goal:
    """The goal that limits are to meet.

    Attributes:
        back_within_seconds: All are back by then, but for the share that may be refused.
        refused_share: The most of all requests that may be refused or not answered in time.
        accounted_mb: The most that each server's limiter may hold, heap and direct together; one
            MB is 1,048,576 bytes, as in Pulsar's keys.
    """

    back_within_seconds: float = 60.0
    refused_share: float = 0.001
    accounted_mb: int = 512

    def __str__(self) -> str:
        return (
            f"all clients recovered within {self.back_within_seconds:g} s, at most "
            f"{100 * self.refused_share:g} % refused, at most {self.accounted_mb:,} MB in each "
            "limiter"
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of one try.

    Attributes:
        back: Clients that were back by the end of the goal's time.
        slowest_seconds: When the last of them was back; None: nobody was.
        requests: Lists and watches asked for.
        refused: Those refused, timed out, lost or wrong.
        accounted: The most that each server's limiter held, in bytes: heap and direct.
        reasons: Texts of refusals, and how many had each.
    """

    clients: int
    back: int
    slowest_seconds: float | None
    requests: int
    refused: int
    accounted: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused_share(self) -> float:
        """Share of requests that were refused."""
        return self.refused / self.requests if self.requests else 0.0

    def __str__(self) -> str:
        last = self.slowest_seconds
        told = "" if last is None else f", the last after {format_seconds(last)}"
        refused = percent(self.refused_share)
        return f"{self.back:,} of {self.clients:,} recovered{told}; {refused} refused"


def misses(goal: Goal, outcome: Outcome) -> list[str]:
    """Say where an outcome falls short of a goal; empty: it meets it."""
    found = []
    late, share = outcome.clients - outcome.back, goal.refused_share
    # A share as a float is not exact.
    if late > outcome.clients * share + 1e-6:
        found.append(
            f"{late:,} of {outcome.clients:,} not recovered within {goal.back_within_seconds:g} s"
        )
    if outcome.refused > outcome.requests * share + 1e-6:
        found.append(f"{percent(outcome.refused_share)} refused")
    for server, held in outcome.accounted.items():
        if held > goal.accounted_mb * MB_BYTES:
            found.append(f"the {server}'s limiter held {format_bytes(held)}")
    return found


def told(goal: Goal, outcome: Outcome) -> str:
    """Say in a few words how an outcome does by a goal."""
    missed, last = misses(goal, outcome), outcome.slowest_seconds
    if missed:
        return f"goal missed: {'; '.join(missed)}"
    if last is None:
        return "goal met, no client asked"
    return f"goal met, last client recovered after {format_seconds(last)}"


def percent(share: float) -> str:
    """Write a share with the digits that matter."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


@dataclass(frozen=True)
class NamespaceShape:
    """A namespace: its number of listed names, and the bytes of all of them."""

    name: str
    topics: int
    name_bytes: int

    @property
    def charged_bytes(self) -> int:
        """Heap that a listing is charged with, as shipped: the names and 32 bytes for each."""
        return self.name_bytes + BYTES_PER_NAME * self.topics

    @property
    def answer_bytes(self) -> int:
        """Size of the answer, which direct memory is charged with."""
        long_names = self.topics and self.name_bytes / self.topics > LONGEST_ONE_BYTE_LENGTH
        return self.name_bytes + self.topics * (3 if long_names else 2) + ANSWER_HEAD_BYTES


@dataclass(frozen=True)
class Readers:
    """The speed at which clients read, in bytes a second; 0 is as fast as it comes.

    Attributes:
        slow_share: Share of clients that read at ``slow_rate`` instead, which may be ``NEVER``.
        network_bytes: Bytes of an answer that lie in the kernels and the network between: what
            has left the server has given its memory back.
    """

    rate: float = 0.0
    slow_share: float = 0.0
    slow_rate: float = NEVER
    network_bytes: int = 131_072

    def seconds(self, answer_bytes: int, *, slow: bool = False) -> float:
        """Return how long a client reads an answer."""
        rate = self.slow_rate if slow else self.rate
        if rate == NEVER:
            return math.inf
        return answer_bytes / rate if rate else 0.0

    def held_seconds(self, answer_bytes: int, *, slow: bool = False) -> float:
        """Return how long an answer holds direct memory: until its last byte has left."""
        return self.seconds(max(0, answer_bytes - self.network_bytes), slow=slow)


@dataclass(frozen=True)
class Workload:
    """A load.

    Attributes:
        namespaces: What is listed; clients of a family ask for one after the other in turn, the
            largest first.
        families: Clients of each family: of a library, or ``once``.
        operation_timeout_seconds: How long a client waits for an answer before it gives up.
        period_seconds: Of polling; ``polite`` asks for its watch by it, too.
        spread_seconds: The time over which all start; 0: at once.
        max_message_bytes: ``maxMessageSize``.
        seed: Of all that is left to chance.
    """

    namespaces: tuple[NamespaceShape, ...]
    families: Mapping[str, int]
    readers: Readers = Readers()
    operation_timeout_seconds: float = 30.0
    period_seconds: float = 60.0
    spread_seconds: float = 0.0
    max_message_bytes: int = 5 * 1024 * 1024
    seed: int = 1

    @property
    def clients(self) -> int:
        """Clients in all."""
        return sum(self.families.values())

    @property
    def slow_clients(self) -> int:
        """Clients that read slowly."""
        return sum(self.slow(count) for count in self.families.values())

    def slow(self, clients: int) -> int:
        """Return how many of a family's clients read slowly."""
        return round(clients * self.readers.slow_share)

    @property
    def largest(self) -> NamespaceShape:
        """The namespace with the largest answer: no limit may be below it."""
        return self.listed[0]

    @cached_property
    def listed(self) -> tuple[NamespaceShape, ...]:
        """Namespaces that anybody lists, the largest first: each family begins with it.

        So do its slow clients, among themselves.
        """
        by_size = sorted(self.namespaces, key=lambda each: (-each.charged_bytes, each.name))
        counts = self.families.values()
        most = max(max(count - self.slow(count), self.slow(count)) for count in counts)
        return tuple(by_size[:most])

    @property
    def first_estimates_bytes(self) -> int:
        """Heap that first requests of all namespaces hold together, as shipped.

        Each reserves so little as long as nobody knows the size of its list, and waits for the rest
        behind all who came meanwhile: with less than this they wait for each other.
        """
        return sum(min(FIRST_ESTIMATE_BYTES, each.charged_bytes) for each in self.listed)

    @cached_property
    def mean(self) -> NamespaceShape:
        """A namespace of the mean size of those that are listed."""
        count = len(self.listed)
        topics = sum(each.topics for each in self.listed)
        name_bytes = sum(each.name_bytes for each in self.listed)
        return NamespaceShape("mean", round(topics / count), round(name_bytes / count))

    @property
    def answers(self) -> int:
        """Lists that clients are sent until all are back: a watch's answer is one."""
        return sum(n * (2 if name in WATCHING else 1) for name, n in self.families.items())


# -- where a load comes from ----------------------------------------------------------------------


def workload_of(document: Document, network_bytes: int = 131_072) -> Workload:
    """Return the load of a document: its namespaces, its clients that list or discover.

    Raises:
        UsageError: Nobody lists there, or its topics are in a server.
    """
    topics = document.topics
    if topics.of:
        raise UsageError("topics.of are a server's: name its --admin-url, whose topics are counted")
    if topics.corpus is not None:
        raise UsageError("topics.corpus is a folder: name it as --corpus, or a list as --topics")
    families: Counter[str] = Counter()
    speeds: Counter[float] = Counter()
    groups = [each for each in document.clients if each.operations[0] == "list"]
    for group in groups:
        families[group.library if isinstance(group, Discover) else ONCE] += group.count
        speeds[NEVER if group.read.never else group.read.rate] += group.count
    if not groups:
        raise UsageError(f"{document.name} has no clients that list or discover topics")
    rate, *others = [speed for speed, _ in speeds.most_common()]
    slow = sum(speeds[each] for each in others)
    sizes = {each.name: each.topics or 0 for each in topics.expected()}
    each = topics.mean_name_bytes
    return Workload(
        tuple(NamespaceShape(name, size, size * each) for name, size in sizes.items()),
        dict(families),
        Readers(rate, slow / families.total(), min(others, default=NEVER), network_bytes),
        operation_timeout_seconds=max(group.timeout for group in groups),
        period_seconds=max((g.period for g in groups if isinstance(g, Discover)), default=60.0),
        spread_seconds=max(max(g.arrive.moments(g.count, document.seed)) for g in groups),
        seed=document.seed,
    )


def shapes_of_file(path: Path) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of a list of topics, text or Parquet, or of what was made up.

    Raises:
        UsageError: It cannot be read, or names no persistent topic.
    """
    made = (path / MANIFEST_NAME).is_file()
    sizes: Mapping[str, Any] = (
        open_corpus(path).manifest.namespaces if made else read_own_topics(path).namespaces
    )
    return tuple(NamespaceShape(name, each.topics, each.name_bytes) for name, each in sizes.items())


def shapes_of_cluster(admin_url: str, names: Sequence[str]) -> tuple[NamespaceShape, ...]:
    """Ask a running cluster, Floodgate or Pulsar, what listings of its namespaces hold.

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        names: Which namespaces; none are all of them.

    Raises:
        LoadgenError: It cannot be asked, or refuses.
        UsageError: It has no persistent topic.
    """
    found = tuple(each for each in asyncio.run(_counted(admin_url, names)) if each.topics)
    if not found:
        raise UsageError(f"{admin_url} has no persistent topic in the namespaces that were asked")
    return found


async def _counted(admin_url: str, names: Sequence[str]) -> list[NamespaceShape]:
    at_once = asyncio.Semaphore(_CALLS_AT_ONCE)
    with admin_errors("Counting topics", admin_url):
        async with admin_of(admin_url, _CALL_SECONDS) as admin:

            async def count(name: str) -> NamespaceShape:
                topics = name_bytes = 0
                async with at_once:
                    async for batch in admin.namespaces.topics(NamespaceName.parse(name)):
                        topics += len(batch)
                        name_bytes += sum(len(each.encode()) for each in batch)
                return NamespaceShape(name, topics, name_bytes)

            wanted = list(names)
            if not wanted:
                for tenant in await admin.tenants.list():
                    wanted += await admin.namespaces.list(tenant)
            return list(await asyncio.gather(*map(count, sorted(wanted))))


def chosen(
    shapes: Sequence[NamespaceShape], names: Sequence[str], source: object
) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of these names; of none, all.

    Raises:
        UsageError: One of them is not there.
    """
    known = {each.name: each for each in shapes}
    missing = [name for name in names if name not in known]
    if missing:
        largest = sorted(shapes, key=lambda each: -each.topics)[:_NAMES_SHOWN]
        raise UsageError(
            f"--namespace {missing[0][:100]} has no persistent topic in {source}; its largest "
            f"namespaces are: {', '.join(each.name for each in largest)}"
        )
    return tuple(known[name] for name in names) if names else tuple(shapes)


# -- its document ---------------------------------------------------------------------------------


def document_text(
    workload: Workload, goal: Goal, limits: Mapping[str, Mapping[str, str]], profile: Profile
) -> str:
    """Return the document of an advice: what is tried, what confirms it, and what checks it.

    Args:
        workload: Its topics and clients.
        goal: What it expects.
        limits: Keys of each server.
        profile: Of both.
    """
    receive = max(
        LEAST_BUFFER_BYTES, min(RECEIVE_BUFFER_BYTES, workload.readers.network_bytes // 2)
    )
    send = max(LEAST_BUFFER_BYTES, workload.readers.network_bytes - receive)
    more = {"floodgateSocketSendBufferBytes": send, "maxMessageSize": workload.max_message_bytes}
    servers = {role: {**keys, **more} for role, keys in limits.items()}
    back = 100 * (1 - goal.refused_share)
    document: dict[str, Any] = {
        "name": "advice",
        "description": f"Checks an advice: {goal}.",
        "seed": workload.seed,
        "topics": _topics(workload),
        # As shipped, a real Pulsar is advised.
        "servers": {"profile": profile, "service_times": profile, **servers},
        "clients": list(_groups(workload, receive)),
        "phases": {"measure": longest_seconds(workload, goal), "drain": 0},
        "expect": [
            f"clients.back.p{back:.10g} <= {goal.back_within_seconds:.10g}s",
            f"requests.refused.rate <= {100 * goal.refused_share:.10g}%",
        ],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def longest_seconds(workload: Workload, goal: Goal) -> float:
    """Return how long a try may last: until the last client that starts has missed the goal."""
    return min(workload.spread_seconds + _LONGER * goal.back_within_seconds, LONGEST_SECONDS)


def _groups(workload: Workload, receive_buffer: int) -> Iterator[dict[str, Any]]:
    """Yield of each family those that read, and those that read slowly."""
    readers, spread = workload.readers, workload.spread_seconds
    for family, count in workload.families.items():
        slow = workload.slow(count)
        for name, clients, rate in (
            (family, count - slow, readers.rate),
            (f"{family}-slow", slow, readers.slow_rate),
        ):
            if not clients:
                continue
            group: dict[str, Any] = {"name": name, "do": "list", "count": clients}
            if family != ONCE:
                period = workload.period_seconds
                group |= {"do": "discover", "library": family, "period": period}
            if clients <= FASTEST_STARTS * spread:
                group["arrive"] = {"kind": "constant", "rate": clients / spread}
            group["timeout"] = workload.operation_timeout_seconds
            reading = {"never": True} if rate == NEVER else {"rate": rate}
            yield {**group, "read": {**reading, "buffer": receive_buffer}}


def _topics(workload: Workload) -> dict[str, Any]:
    """Return the namespaces that are listed, by size classes, with names of their mean length.

    Where a namespace's own names are longer or shorter than that, it has so many more or fewer
    that its list counts as much.
    """
    mean = workload.mean
    name_bytes = round(mean.name_bytes / max(1, mean.topics))
    name_bytes = min(max(name_bytes, SHORTEST_NAME_BYTES), LONGEST_NAME_BYTES)

    def names(shape: NamespaceShape) -> int:
        alike = round(shape.charged_bytes / (name_bytes + BYTES_PER_NAME))
        return max(1, shape.topics if abs(alike / shape.topics - 1) < _ALIKE else alike)

    sizes = [
        {"namespaces": count, "per_namespace": size}
        for count, size in size_classes([names(each) for each in workload.listed])
    ]
    return {**sizes[0], "mean_name_bytes": name_bytes, "seed": workload.seed, "further": sizes[1:]}


def size_classes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return how many namespaces have how many names, the largest first.

    The number of namespaces, that of all names and the largest namespaces are kept in any case.
    """
    ordered = sorted(sizes, reverse=True)
    if len(set(ordered)) > MOST_SIZES:
        largest = ordered.count(ordered[0])
        ordered = ordered[:largest] + sorted(_evened(ordered[largest:]), reverse=True)
    return [(count, size) for size, count in Counter(ordered).items()]


def _evened(ordered: Sequence[int]) -> Iterator[int]:
    """Yield the sizes of groups that have about as many names each, made alike within a group."""
    groups: list[list[int]] = [[] for _ in range(MOST_SIZES)]
    total, before = sum(ordered), 0
    for size in ordered:
        groups[before * MOST_SIZES // total].append(size)
        before += size
    for group in filter(None, groups):
        each, more = divmod(sum(group), len(group))
        yield from (each + (index < more) for index in range(len(group)))


# -- what came of a run of it ---------------------------------------------------------------------

# Who is back goes on polling: what the end of the run cut of that was refused by nobody.
_REQUESTS = """SELECT r.outcome, r.reason, count(*) AS n FROM requests r
  JOIN ({clients}) c ON r.client = c.client
  WHERE r.operation IN ('list', 'watch')
    AND NOT (r.reason = :ended AND c.back_seconds < CAST('Infinity' AS DOUBLE))
  GROUP BY r.outcome, r.reason ORDER BY n DESC, r.reason"""
_CLIENTS = """SELECT count(*) AS clients, coalesce(count_if(back_seconds <= :within), 0) AS back,
  max(CASE WHEN back_seconds < CAST('Infinity' AS DOUBLE) THEN back_seconds END) AS slowest
  FROM ({clients})"""


def outcome_of(goal: Goal, directory: Path) -> Outcome:
    """Return the outcome of a run by a goal."""
    inner = QUERIES["clients"].sql
    with Results.open(directory) as results:
        rows = results.sql(_REQUESTS.replace("{clients}", inner), ended=RUN_ENDED)
        within = goal.back_within_seconds
        (found,) = results.sql(_CLIENTS.replace("{clients}", inner), within=within)
        servers = {(row["process"], row["figure"]): row["max"] for row in results.query("servers")}
    failed = [row for row in rows if row["outcome"] != "answered"]
    reasons: Counter[str] = Counter()
    for row in failed:
        reasons[row["reason"] or row["outcome"]] += row["n"]
    held = {
        server: sum(
            servers.get((server, f"{kind}.high"), servers.get((server, f"{kind}.used"), 0.0))
            for kind in ("heap", "direct")
        )
        for server in dict.fromkeys(process for process, _ in servers)
    }
    return Outcome(
        found["clients"],
        found["back"],
        found["slowest"],
        sum(row["n"] for row in rows),
        sum(row["n"] for row in failed),
        held,
        dict(reasons),
    )
