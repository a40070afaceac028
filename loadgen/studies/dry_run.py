"""A dry run: it compares what a run needs with what this machine has.

The numbers of requests and the sizes of memory and disk are estimates. A run that needs more than
the machine has is refused before it starts, with a sentence and a remedy for each resource.
"""

from __future__ import annotations

import math
import re
import resource
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from loadgen.errors import UsageError
from loadgen.loopback import is_loopback
from loadgen.places.launcher import known_namespaces
from loadgen.places.options import resolved
from loadgen.plan.clients import CLIENTS_PER_SOURCE_ADDRESS, start_moments
from loadgen.results.expectations import parse_expectations, require_measured
from loadgen.stored import StoredPath
from loadgen.studies.advise.limits import limits_of
from loadgen.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.options import RunOptions
    from loadgen.plan.clients import Namespace
    from loadgen.plan.group import Group
    from loadgen.results.expectations import Expectation

_UNLIMITED, _MB = 1 << 62, 1 << 20
_OWN_DESCRIPTORS, _SHARED_CONNECTIONS = 64, 8
"""Open files of each process; connections from a ``floodgate`` proxy to the broker."""
_IDLE_BYTES = {"worker": 70 * _MB, "broker": 160 * _MB, "proxy": 65 * _MB}
_PER_CONNECTION_BYTES = 20_000
"""Memory per connection, from 10,000 sockets of all families: 12 kB in a proxy, 20 kB in a
broker."""
_PER_TOPIC_BYTES, _TOPIC_FILE_BYTES, _ROW_BYTES = 150, 30, 60
_ENTRY_BYTES, _HEAD_BYTES, _SMALL_ANSWER_BYTES = 2, 40, 100
"""Bytes of an answer: for each name's tag and length; for ids and hash; for a whole lookup
answer."""


class Machine(NamedTuple):
    """The resources that a machine has; None means unknown.

    Attributes:
        descriptors: The largest number of open files of a process.
        ports: Number of free ports for a pair of source and destination address.
        memory_bytes: Memory that is available now.
        disk_bytes: Free disk space in the folder of the run.
    """

    descriptors: int
    ports: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class GroupSchedule:
    """The requests of one group of clients, as far as they are known before the run.

    Attributes:
        connections: The largest number of connections, if the clients use a proxy.
        requests: Estimated number of requests.
        first_start_seconds, last_start_seconds: When the first and the last client start.
        answer_bytes: The mean size of an answer, on the wire.
        later: True if clients send further requests, at moments known only during the run.
    """

    name: str
    clients: int
    connections: int
    requests: int
    first_start_seconds: float
    last_start_seconds: float
    answer_bytes: int
    later: bool


@dataclass(frozen=True)
class Need:
    """The amount of a resource that a run needs, and the amount that this machine has.

    Attributes:
        has: The amount that the machine has; None if unknown.
        remedy: What to do if the machine has too little; empty if the resource has no limit.
    """

    what: str
    needed: int
    has: int | None = None
    remedy: str = ""
    unit: Literal["count", "bytes"] = "count"

    def text(self, number: int | None) -> str:
        """Format an amount of the resource with its unit."""
        if number is None:
            return "unknown" if self.remedy else ""
        return format_bytes(number) if self.unit == "bytes" else format_count(number)

    @property
    def obstacle(self) -> str | None:
        """A sentence with a remedy if the machine has too little; None if it has enough."""
        if self.has is None or self.needed <= self.has:
            return None
        needed, has = self.text(self.needed), self.text(self.has)
        return f"{self.what}: {needed} are needed and {has} are there: {self.remedy}"


class DryRun(NamedTuple):
    """The schedule of a run, and the resources that the run needs."""

    document: Document
    groups: tuple[GroupSchedule, ...]
    needs: tuple[Need, ...]

    @property
    def seconds(self) -> float:
        """The longest duration of all repeats, in seconds, from the moment that clients start."""
        return self.document.repeats * (self.document.phases.end + self.document.phases.drain)

    @property
    def obstacles(self) -> list[str]:
        """A sentence for each resource of which the machine has too little."""
        return [each.obstacle for each in self.needs if each.obstacle]

    def require_fit(self) -> None:
        """Raise an error if the run needs more than the machine has.

        Raises:
            UsageError: The machine has too little of a resource; the message has a line for each.
        """
        if self.obstacles:
            raise UsageError("\n".join(self.obstacles))


def measured_expectations(document: Document, options: RunOptions) -> tuple[Expectation, ...]:
    """Return a scenario's expectations, after a check that the run can measure all of them.

    Raises:
        UsageError: The run could not measure an expectation.
    """
    found = parse_expectations(document.expect, [group.name for group in document.clients])
    own = (*document.servers.roles, *(("proxy",) if options.files.proxy.keys else ()))
    watched = options.admin_urls if options.service_url else own
    operations = [name for group in document.clients for name in group.operations]
    require_measured(found, watched, operations)
    return found


def dry_run(document: Document, options: RunOptions, machine: Machine | None = None) -> DryRun:
    """Compute the resources that a run needs, and compare them with those of a machine.

    By default that is this machine.

    Raises:
        UsageError: The options do not fit each other or the document.
    """
    document, options = resolved(document, options)
    machine = machine or this_machine(options.out)
    groups = tuple(_schedules(document))
    sockets = options.place != "virtual"
    made = sockets and not options.service_url and document.topics.made
    topics = sum(document.topics.sizes) if made else 0
    over = _over_sockets(document, options, groups, topics, machine) if sockets else ()
    return DryRun(document, groups, (*over, *_answers(groups, topics, machine)))


def this_machine(out: Path) -> Machine:
    """Return the resources of this machine, given the folder of the run.

    Raises:
        UsageError: The folder cannot be written to.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ports = _numbers("sys/net/ipv4/ip_local_port_range")
    memory = _numbers("meminfo", "MemAvailable:")
    out = Path(tempfile.gettempdir()) if isinstance(out, StoredPath) else out.resolve()
    existing = next(each for each in (out, *out.parents) if each.is_dir())
    disk = shutil.disk_usage(existing)
    if not disk.total:  # as of /proc
        raise UsageError(f"--out {out}: nothing can be written in {existing}: choose another --out")
    return Machine(
        _UNLIMITED if hard == resource.RLIM_INFINITY else hard,
        ports[1] - ports[0] + 1 if ports else None,
        memory[0] * 1024 if memory else None,
        disk.free,
    )


def _numbers(file: str, behind: str = "") -> list[int]:
    """Return the numbers in the line that begins with ``behind`` of a file in /proc.

    The result is empty if there is no such file or line.
    """
    try:
        text = Path("/proc", file).read_text()
    except OSError:
        return []
    line = re.search(f"^{behind}(.*)", text, re.MULTILINE)
    return [int(each) for each in re.findall(r"\d+", line[1])] if line else []


def _schedules(document: Document) -> Iterator[GroupSchedule]:
    namespaces, end = known_namespaces(document.topics), document.phases.end
    for seed, group in enumerate(document.clients, document.seed):
        starts = start_moments(group, seed)
        waiting = group.count - len(starts)  # The rest start when earlier clients are done.
        requests = sum(group.requests_each(end - each) for each in starts if each < end)
        requests += waiting * group.requests_each(0.0)
        asked = namespaces[slice(*(group.namespaces or (None, None)))][: group.count]
        yield GroupSchedule(
            name=group.name,
            clients=group.count,
            connections=group.count * group.connections_each,
            requests=round(requests),
            first_start_seconds=min(starts),
            last_start_seconds=max(starts),
            answer_bytes=_answer_bytes(group, asked, document),
            later=bool(group.family),
        )


def _answer_bytes(group: Group, asked: Sequence[Namespace], document: Document) -> int:
    """Return the mean size of the answers to a group of clients, in bytes.

    A namespace of unknown size is assumed to have the usual size of the scenario's namespaces.
    """
    if not {"list", "watch"} & set(group.operations):
        delivered = group.operations[0] == "deliver"
        return int(getattr(group, "size", 0)) if delivered else _SMALL_ANSWER_BYTES
    usual, each = document.topics.per_namespace, document.topics.mean_name_bytes + _ENTRY_BYTES
    names = sum(usual if one.topics is None else one.topics for one in asked)
    return names * each // max(1, len(asked)) + _HEAD_BYTES


def _answers(groups: Sequence[GroupSchedule], topics: int, machine: Machine) -> Iterator[Need]:
    """Yield the bytes that a run needs for its answers and for files."""
    answers = sum(group.requests for group in groups)
    size = sum(group.requests * group.answer_bytes for group in groups)
    more = ", and what clients ask for later" if any(group.later for group in groups) else ""
    yield Need(f"bytes of {plural(answers, 'answer')}{more}", size, unit="bytes")
    disk, what = topics * _TOPIC_FILE_BYTES + answers * _ROW_BYTES, plural(topics, "topic")
    remedy = "use another --out, or fewer topics"
    yield Need(f"disk, with {what}", disk, machine.disk_bytes, remedy, "bytes")


def _over_sockets(
    document: Document,
    options: RunOptions,
    groups: Sequence[GroupSchedule],
    topics: int,
    machine: Machine,
) -> Iterator[Need]:
    """Yield the resources that a run over sockets needs: connections, ports, files and memory."""
    own, tasks, servers = not options.service_url, options.tasks or 1, document.servers
    proxy = servers.proxy is not None if own else "proxy" in options.admin_urls
    clients = sum(group.clients for group in groups)
    tunnels = sum(group.connections for group in groups) - clients if proxy else 0
    connections = of_broker = clients + tunnels
    yield Need(f"connections {'through the proxy' if proxy else 'to the broker'}", connections)
    if tunnels:
        yield Need("of them tunnels", tunnels)
    remedy = "widen net.ipv4.ip_local_port_range, or use fewer clients"
    # On the loopback clients have several source addresses.
    on_loopback = own or is_loopback(options.service_url)
    share = min(1.0, CLIENTS_PER_SOURCE_ADDRESS / clients) if on_loopback else 1.0
    ports = math.ceil(share * connections)
    has = None if options.elsewhere else machine.ports
    yield Need("ports of a source address", ports, has, remedy)
    read = sum({group.answer_bytes for group in groups})
    processes = [("worker", tasks, math.ceil(connections / tasks), read, not options.elsewhere)]
    if proxy:
        # A tunnel has a connection of its own; other requests share the proxy's connections.
        of_broker = tunnels + (clients if servers.profile == "pulsar" else _SHARED_CONNECTIONS)
        held = limits_of(servers.proxy or {}).accounted_mb * _MB
        processes.append(("proxy", 1, connections + of_broker, held, own))
    held = limits_of(servers.broker).accounted_mb * _MB + topics * _PER_TOPIC_BYTES
    yield from _processes([*processes, ("broker", 1, of_broker, held, own)], machine)


def _processes(
    processes: Sequence[tuple[str, int, int, int, bool]], machine: Machine
) -> Iterator[Need]:
    """Yield the numbers of open files and the memory that each kind of process needs.

    Each item of ``processes`` has a name, a number of processes, sockets per process, bytes held,
    and whether loadgen starts the process on this machine.

    Processes of another owner, or on another machine, have limits of their own.
    """
    whole = 0
    for name, count, sockets, held, own in processes:
        each = f"{name} (each of {count})" if count > 1 else name
        remedy = f"raise ulimit -Hn, or use {'more --tasks or ' * (name == 'worker')}fewer clients"
        limit = machine.descriptors if own else None
        yield Need(f"descriptors, {each}", sockets + _OWN_DESCRIPTORS, limit, remedy)
        if own:
            memory = _IDLE_BYTES[name] + sockets * _PER_CONNECTION_BYTES + held
            whole += count * memory
            yield Need(f"memory, {each}, about", memory, unit="bytes")
    remedy = "use fewer clients or topics"
    yield Need("memory in all, about", whole, machine.memory_bytes, remedy, "bytes")


def told(run: DryRun) -> dict[str, Any]:
    """Return a dry run as the JSON object that ``--dry-run --json`` prints."""
    return {
        "scenario": run.document.name,
        "seconds_at_most": run.seconds,
        "groups": run.groups,
        "needs": run.needs,
        "obstacles": run.obstacles,
        "warnings": run.document.warnings,
    }


def duration(run: DryRun) -> str:
    """Return a sentence on the duration of the run and its phases."""
    phases, repeats = run.document.phases, run.document.repeats
    words = {"warm_up": "warm-up", "measure": "measuring", "hold": "hold", "drain": "draining"}
    lengths = [(word, getattr(phases, name)) for name, word in words.items()]
    parts = ", ".join(f"{word} {format_seconds(length)}" for word, length in lengths if length)
    times = f"{plural(repeats, 'run')} of " if repeats > 1 else ""
    lasting = phases.hold or any(group.lasts for group in run.document.clients)
    early = "" if lasting else ", and less if all clients are done before"
    return f"It takes at most {format_seconds(run.seconds)} ({times}{parts}){early}."


def needs_table(run: DryRun) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table of needed and available resources."""
    rows = [[each.what, each.text(each.needed), each.text(each.has)] for each in run.needs]
    return ["needs", "", "of"], rows


def schedule_table(run: DryRun) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table of each group's requests and start times."""
    rows = []
    for each in run.groups:
        starts = map(format_seconds, (each.first_start_seconds, each.last_start_seconds))
        requests = f"{each.requests:,}{' +' * each.later}"
        rows.append([each.name, f"{each.clients:,}", requests, *starts])
    return ["group", "clients", "requests, about", "first starts", "last starts"], rows
