"""A dry run: what a run would need of this machine, and when; all of it follows from the document.

Sizes of memory and disk are estimates. What the machine cannot do is refused before anything is
touched, a sentence each with its remedy.
"""

from __future__ import annotations

import math
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.engine.connecting import CONNECTING_AT_ONCE
from loadgen.errors import UsageError
from loadgen.loopback import is_loopback
from loadgen.places.options import resolved
from loadgen.places.topics import known_namespaces
from loadgen.plan.clients import CLIENTS_PER_SOURCE_ADDRESS, source_address, start_moments
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from loadgen.documents.model import Document
    from loadgen.places.options import RunOptions
    from loadgen.plan.clients import Namespace
    from loadgen.plan.group import Group

SCHEMA_VERSION = 2
_UNLIMITED, _MB = 1 << 62, 1 << 20
_NET = Path("/proc/sys/net")
_BEAT_SECONDS = 0.1
"""Answers of one beat are under way together, however fast they are read."""
_OWN_DESCRIPTORS, _SHARED_CONNECTIONS = 64, 8
"""Of each process; of a proxy of profile ``floodgate`` to its broker, whatever its clients are."""
_IDLE_BYTES = {"worker": 70 * _MB, "broker": 160 * _MB, "proxy": 65 * _MB}
_PER_CONNECTION_BYTES = 20_000
"""Measured with 10,000 sockets of all families: 12 kB in a proxy, 20 kB in a broker."""
_PER_TOPIC_BYTES, _TOPIC_FILE_BYTES, _ROW_BYTES = 150, 30, 60
_ENTRY_BYTES, _HEAD_BYTES, _SMALL_ANSWER_BYTES = 2, 40, 100
"""Of an answer: each name's tag and length; its ids and hash; all of one that is no list."""
_LIMITS = ("maxTopicListInFlightHeapMemSizeMB", "maxTopicListInFlightDirectMemSizeMB")
_BINS, _BLOCKS = 16, " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Machine:
    """The means of a machine; None is unknown.

    Attributes:
        descriptors: The most that a process may open.
        ports: Free for one pair of source and destination address.
        backlog: The most connections that a socket lets wait to be accepted.
        memory_bytes: What is available now.
        disk_bytes: What is free where the run is written.
    """

    descriptors: int
    ports: int | None = None
    backlog: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class GroupSchedule:
    """The requests of one group of clients, as far as they are known before the run.

    Attributes:
        starts: When requests are due, in ascending order, relative to the agreed start.
        answer_bytes: Of each answer, on the wire.
        reading_seconds: How long a client takes to read one.
        never_read: True if answers stay unread.
        later: True if clients ask again, at moments that only the run decides.
    """

    name: str
    clients: int
    connections: int
    starts: NDArray[np.float64]
    answer_bytes: int
    reading_seconds: float
    never_read: bool
    later: bool

    def rates(self, bins: int, until_seconds: float) -> list[float]:
        """Return how many start each second in so many equal parts of a time."""
        counts, _ = np.histogram(self.starts, bins, (0.0, until_seconds))
        return [float(count) * bins / until_seconds for count in counts]


@dataclass(frozen=True)
class ProcessNeeds:
    """One process, or each of several alike; ``own`` if this run starts it, on this machine."""

    name: str
    count: int
    descriptors: int
    memory_bytes: int
    own: bool = True


@dataclass(frozen=True)
class DryRun:
    """The needs of a run beside what the machine has.

    Attributes:
        connections: Sockets of all clients.
        tunnels: Those of them that a proxy carries through to its broker.
        ports: Connections from each source address.
        bytes_at_once: The most of answers under way at one moment, of infinitely fast servers.
        connecting_at_once: The most connections that wait to be accepted.
        topics: Made for the run; 0: none.
        disk_bytes: Of topics and rows.
    """

    document: Document
    machine: Machine
    groups: tuple[GroupSchedule, ...]
    through_proxy: bool
    connections: int
    tunnels: int
    ports: Mapping[str, int]
    processes: tuple[ProcessNeeds, ...]
    bytes_at_once: int
    connecting_at_once: int
    topics: int
    disk_bytes: int

    @property
    def until(self) -> float:
        """The moment of the last request that is known before the run, at least a second."""
        return max(1.0, *(float(group.starts[-1]) for group in self.groups))

    @property
    def answers(self) -> int:
        """Requests that are known before the run."""
        return sum(len(group.starts) for group in self.groups)

    @property
    def answer_bytes(self) -> int:
        """All their answers together."""
        return sum(len(group.starts) * group.answer_bytes for group in self.groups)

    @property
    def memory_bytes(self) -> int:
        """Of all processes that this run starts."""
        return sum(each.memory_bytes * each.count for each in self.processes if each.own)

    @property
    def obstacles(self) -> list[str]:
        """What keeps the run from fitting the machine, a sentence each."""
        return [*_descriptors(self), *_others(self)]

    def require_fit(self) -> None:
        """Refuse a run that does not fit.

        Raises:
            UsageError: It does not; a line for each reason.
        """
        if self.obstacles:
            raise UsageError("\n".join(self.obstacles))


def dry_run(document: Document, options: RunOptions, machine: Machine | None = None) -> DryRun:
    """Reckon the needs of a run; None is this machine.

    Raises:
        UsageError: The options do not fit each other or the document.
    """
    document, options = resolved(document, options)
    servers, tasks, sockets = document.servers, options.tasks or 1, options.place != "virtual"
    proxy = "proxy" in options.admin_urls if options.service_url else servers.proxy is not None
    groups = tuple(_schedules(document, known_namespaces(document.topics)))
    clients = sum(group.clients for group in groups)
    tunnels = sum(group.connections - group.clients for group in groups) if proxy else 0
    own = not options.service_url
    topics = sum(document.topics.sizes) if own and document.topics.made and sockets else 0
    loopback = not options.service_url or is_loopback(options.service_url)
    found = DryRun(
        document,
        machine or this_machine(options.out),
        groups,
        proxy,
        clients + tunnels,
        tunnels,
        _ports(clients, clients + tunnels, loopback=loopback) if sockets else {},
        (),
        _most_at_once(groups),
        min(clients, CONNECTING_AT_ONCE * tasks) if sockets else 0,
        topics,
        topics * _TOPIC_FILE_BYTES + _ROW_BYTES * sum(len(group.starts) for group in groups),
    )
    processes = tuple(_processes(found, tasks, own, options.master is None)) if sockets else ()
    return DryRun(**{**vars(found), "processes": processes})


def this_machine(out: Path) -> Machine:
    """Return the means of this machine; ``out`` is where the run is written."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ports, backlog = (
        _numbers(_NET / each) for each in ("ipv4/ip_local_port_range", "core/somaxconn")
    )
    out = out.resolve()
    existing = next(each for each in (out, *out.parents) if each.is_dir())
    return Machine(
        _UNLIMITED if hard == resource.RLIM_INFINITY else hard,
        ports[1] - ports[0] + 1 if len(ports) == 2 else None,
        backlog[0] if backlog else None,
        _available_memory(),
        shutil.disk_usage(existing).free,
    )


def _numbers(file: Path) -> list[int]:
    try:
        return [int(each) for each in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _available_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    return int(sizes["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in sizes else None


# -- the schedule ---------------------------------------------------------------------------------


def _schedules(document: Document, namespaces: Sequence[Namespace]) -> Iterator[GroupSchedule]:
    for number, group in enumerate(document.clients):
        starts = np.zeros(group.count)  # Whose turn comes later starts at the earliest with these.
        moments = start_moments(group, document.seed + number)
        starts[: len(moments)] = moments
        asked = namespaces[slice(*(group.namespaces or (None, None)))][: group.count]
        answer, rate = _answer_bytes(group, asked, document), group.read.rate
        yield GroupSchedule(
            group.name,
            group.count,
            group.count * group.connections_each,
            _repeated(group, np.sort(starts), document.phases.end),
            answer,
            answer / rate if rate else 0.0,
            group.read.never,
            later=bool(group.family),
        )


def _repeated(group: Group, starts: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """Return all moments at which a group's clients ask: of a library, the first of each."""
    every: float = getattr(group, "every", 0.0)
    if every:
        beats = np.arange(0.0, max(every, end), every)
        starts = (starts[:, None] + beats[None, :]).ravel()
        starts = np.sort(starts)
        starts = starts[: max(1, int(np.searchsorted(starts, end)))]
    return np.repeat(starts, getattr(group, "pipelined", 1))


def _answer_bytes(group: Group, asked: Sequence[Namespace], document: Document) -> int:
    """Return the mean size of an answer; of a list that nobody knows, that of the usual one."""
    if not {"list", "watch"} & set(group.operations):
        delivered = group.operations[0] == "deliver"
        return int(getattr(group, "size", 0)) if delivered else _SMALL_ANSWER_BYTES
    usual, each = document.topics.per_namespace, document.topics.mean_name_bytes + _ENTRY_BYTES
    names = sum(usual if one.topics is None else one.topics for one in asked)
    return names * each // max(1, len(asked)) + _HEAD_BYTES


def _most_at_once(groups: Sequence[GroupSchedule]) -> int:
    """Return the most bytes of answers that are under way at one moment."""
    moments, changes = [np.zeros(0, np.int64)], [np.zeros(0)]
    for group in groups:
        begun = np.floor(group.starts / _BEAT_SECONDS + 1e-6).astype(np.int64)
        moments.append(begun)
        changes.append(np.full(len(begun), float(group.answer_bytes)))
        if not group.never_read:
            moments.append(begun + max(1, math.ceil(group.reading_seconds / _BEAT_SECONDS)))
            changes.append(np.full(len(begun), -float(group.answer_bytes)))
    times, sizes = np.concatenate(moments), np.concatenate(changes)
    # What ends and begins at the same moment does not add up.
    return int(np.max(np.cumsum(sizes[np.lexsort((sizes, times))]), initial=0.0))


# -- the needs ------------------------------------------------------------------------------------


def _ports(clients: int, connections: int, *, loopback: bool) -> dict[str, int]:
    """Return how many connections come from each source address."""
    if not loopback:
        return {"this machine": connections}
    size = CLIENTS_PER_SOURCE_ADDRESS
    return {
        source_address(first) or "127.0.0.1": math.ceil(
            min(size, clients - first) * connections / clients
        )
        for first in range(0, clients, size)
    }


def _processes(run: DryRun, tasks: int, own: bool, local: bool) -> Iterator[ProcessNeeds]:
    servers = run.document.servers
    largest = sum({group.answer_bytes for group in run.groups})
    yield _process("worker", math.ceil(run.connections / tasks), largest, tasks, own=local)
    of_broker = run.connections
    if run.through_proxy:
        # A tunnel is a connection of its own; the others' are the proxy's.
        asking = run.connections - run.tunnels
        of_broker = run.tunnels + (asking if servers.profile == "pulsar" else _SHARED_CONNECTIONS)
        held = _limits(servers.proxy or {})
        yield _process("proxy", run.connections + of_broker, held, own=own)
    held = _limits(servers.broker) + run.topics * _PER_TOPIC_BYTES
    yield _process("broker", of_broker, held, own=own)


def _process(name: str, connections: int, held: int, count: int = 1, *, own: bool) -> ProcessNeeds:
    memory = _IDLE_BYTES[name] + connections * _PER_CONNECTION_BYTES + held
    return ProcessNeeds(name, count, connections + _OWN_DESCRIPTORS, memory, own)


def _limits(keys: Mapping[str, str]) -> int:
    """Return the bytes of topic lists that a server with these keys may hold."""
    return sum(int(keys.get(name) or 100) for name in _LIMITS) * _MB


def _descriptors(run: DryRun) -> Iterator[str]:
    most = run.machine.descriptors
    for each in run.processes:
        if each.own and each.descriptors > most:
            remedy = "use more --tasks or " if each.name == "worker" else "use "
            yield (
                f"the {each.name} needs {each.descriptors:,} descriptors and the hard limit is "
                f"{most:,}: raise it (ulimit -Hn), or {remedy}fewer clients"
            )


def _others(run: DryRun) -> Iterator[str]:
    machine = run.machine
    for address, ports in run.ports.items():
        if machine.ports is not None and ports > machine.ports:
            yield (
                f"{ports:,} connections from {address} need a port each, and "
                f"net.ipv4.ip_local_port_range has {machine.ports:,}: widen it, or use fewer "
                "clients"
            )
    if machine.backlog is not None and run.connecting_at_once > machine.backlog:
        yield (
            f"{run.connecting_at_once:,} clients connect at once, and net.core.somaxconn lets "
            f"{machine.backlog:,} wait: raise it, or use fewer --tasks"
        )
    for what, needed, has, state, remedy in (
        ("memory", run.memory_bytes, machine.memory_bytes, "available", "fewer clients or topics"),
        ("disk", run.disk_bytes, machine.disk_bytes, "free", "another --out, or fewer topics"),
    ):
        if has is not None and needed > has:
            yield (
                f"about {format_bytes(needed)} of {what} are needed and {format_bytes(has)} are "
                f"{state}: use {remedy}"
            )


# -- for people and programs ----------------------------------------------------------------------


def told(run: DryRun) -> dict[str, Any]:
    """Return what ``--dry-run --json`` prints."""
    found = {"schema_version": SCHEMA_VERSION, "scenario": run.document.name, **vars(run)}
    del found["document"]
    found["groups"] = [
        {
            **vars(group),
            "starts": len(group.starts),
            "first_start_seconds": float(group.starts[0]),
            "last_start_seconds": float(group.starts[-1]),
            "starts_per_second": group.rates(2 * _BINS, run.until),
        }
        for group in run.groups
    ]
    found |= {"processes": [vars(each) for each in run.processes], "machine": vars(run.machine)}
    for name in ("answers", "answer_bytes", "memory_bytes", "obstacles"):
        found[name] = getattr(run, name)
    return {**found, "warnings": list(run.document.warnings)}


def schedule_table(run: DryRun) -> tuple[list[str], list[list[str]]]:
    """Return when requests of each group begin, with their rate over time as a tiny plot."""
    rows = []
    for group in run.groups:
        rates = group.rates(_BINS, run.until)
        first, last = float(group.starts[0]), float(group.starts[-1])
        rows.append(
            [
                group.name,
                f"{group.clients:,}",
                f"{len(group.starts):,}{' +' * group.later}",
                format_seconds(first),
                format_seconds(last),
                plot(rates),
                f"{max(rates):,.1f}/s" if first < last else "all at once",
            ]
        )
    heads = [
        "group",
        "clients",
        "requests",
        "first",
        "last",
        f"starts, {format_seconds(run.until)}",
    ]
    return [*heads, "at most"], rows


def plot(rates: Sequence[float]) -> str:
    """Draw rates as a line of blocks; what is more than nothing is seen."""
    most, steps = max(rates, default=0.0) or 1.0, len(_BLOCKS) - 1
    return "".join(_BLOCKS[max(1, round(rate / most * steps)) if rate else 0] for rate in rates)


def needs_table(run: DryRun) -> tuple[list[str], list[list[str]]]:
    """Return what the run needs beside what the machine has."""
    machine = run.machine
    way = "through the proxy" if run.through_proxy else "to the broker"
    tunnels = f", {run.tunnels:,} of them tunnels" if run.tunnels else ""
    rows = [[f"connections {way}{tunnels}", f"{run.connections:,}", ""]]
    named = [
        (each, f"{each.name}{f' (each of {each.count})' if each.count > 1 else ''}")
        for each in run.processes
    ]
    for each, name in named:
        limit = f"{machine.descriptors:,}" if each.own else "unknown"
        rows.append([f"descriptors, {name}", f"{each.descriptors:,}", limit])
    for address, ports in run.ports.items():
        rows.append([f"ports, {address}", f"{ports:,}", _known(machine.ports)])
    if named:
        at_once = f"{run.connecting_at_once:,}"
        rows.append(["connecting at once", at_once, _known(machine.backlog)])
    more = ", and what clients ask for later" if any(group.later for group in run.groups) else ""
    answers = plural(run.answers, "answer")
    rows.append([f"bytes of {answers}{more}", format_bytes(run.answer_bytes), ""])
    rows.append(["bytes under way at once, at most", format_bytes(run.bytes_at_once), ""])
    for each, name in named:
        if each.own:
            rows.append([f"memory, {name}", f"about {format_bytes(each.memory_bytes)}", ""])
    if named:
        rows.append(
            [
                "memory in all",
                f"about {format_bytes(run.memory_bytes)}",
                _size(machine.memory_bytes),
            ]
        )
    topics = f", {plural(run.topics, 'topic')}" if run.topics else ""
    disk = f"about {format_bytes(run.disk_bytes)}"
    return ["needs", "", "of"], [*rows, [f"disk{topics}", disk, _size(machine.disk_bytes)]]


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _size(number: int | None) -> str:
    return "unknown" if number is None else format_bytes(number)
