"""A dry run: what a run would need of this machine, and when; all of it follows from the document.

Sizes of memory and disk are estimates. What the machine cannot do is refused before anything is
touched, a sentence each with its remedy.
"""

from __future__ import annotations

import math
import re
import resource
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loadgen.engine.connecting import CONNECTING_AT_ONCE
from loadgen.errors import UsageError
from loadgen.loopback import is_loopback
from loadgen.places.launcher import known_namespaces
from loadgen.places.options import resolved
from loadgen.plan.clients import CLIENTS_PER_SOURCE_ADDRESS
from loadgen.studies.schedule import last_start, most_at_once, schedules
from loadgen.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.options import RunOptions
    from loadgen.studies.schedule import GroupSchedule

_UNLIMITED, _MB, _PARTS = 1 << 62, 1 << 20, 32
_OWN_DESCRIPTORS, _SHARED_CONNECTIONS = 64, 8
"""Of each process; of a proxy of profile ``floodgate`` to its broker, whatever its clients are."""
_IDLE_BYTES = {"worker": 70 * _MB, "broker": 160 * _MB, "proxy": 65 * _MB}
_PER_CONNECTION_BYTES = 20_000
"""Measured with 10,000 sockets of all families: 12 kB in a proxy, 20 kB in a broker."""
_PER_TOPIC_BYTES, _TOPIC_FILE_BYTES, _ROW_BYTES = 150, 30, 60
LIMIT_KEYS = ("maxTopicListInFlightHeapMemSizeMB", "maxTopicListInFlightDirectMemSizeMB")


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
class Need:
    """Something that a run needs, beside what this machine has of it.

    Attributes:
        has: None is unknown.
        remedy: What to do if that is not enough; empty: nothing limits it.
    """

    what: str
    needed: int
    has: int | None = None
    remedy: str = ""
    unit: Literal["count", "bytes"] = "count"

    def text(self, number: int | None) -> str:
        """Write a number of it."""
        if number is None:
            return "unknown" if self.remedy else ""
        return format_bytes(number) if self.unit == "bytes" else format_count(number)

    @property
    def obstacle(self) -> str | None:
        """Why the machine cannot do it, with the remedy; None if it can."""
        if self.has is None or self.needed <= self.has:
            return None
        needed, has = self.text(self.needed), self.text(self.has)
        return f"{self.what}: {needed} are needed and {has} are there: {self.remedy}"


@dataclass(frozen=True)
class DryRun:
    """The schedule of a run, and its needs beside what the machine has."""

    document: Document
    groups: tuple[GroupSchedule, ...]
    needs: tuple[Need, ...]

    @property
    def seconds(self) -> float:
        """How long all repeats take at most, besides starting and connecting."""
        return self.document.repeats * (self.document.phases.end + self.document.phases.drain)

    @property
    def obstacles(self) -> list[str]:
        """What keeps the run from fitting the machine, a sentence each."""
        return [each.obstacle for each in self.needs if each.obstacle]

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
    machine = machine or this_machine(options.out)
    groups = tuple(schedules(document, known_namespaces(document.topics)))
    sockets = options.place != "virtual"
    made = sockets and not options.service_url and document.topics.made
    topics = sum(document.topics.sizes) if made else 0
    needs = [*_answers(groups, topics, machine)]
    if sockets:
        needs = [*_over_sockets(document, options, groups, topics, machine), *needs]
    return DryRun(document, groups, tuple(needs))


def this_machine(out: Path) -> Machine:
    """Return the means of this machine; ``out`` is where the run is written.

    Raises:
        UsageError: Nothing can be written there.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ports = _numbers("sys/net/ipv4/ip_local_port_range")
    backlog, memory = _numbers("sys/net/core/somaxconn"), _numbers("meminfo", "MemAvailable:")
    out = out.resolve()
    existing = next(each for each in (out, *out.parents) if each.is_dir())
    disk = shutil.disk_usage(existing)
    if not disk.total:  # as of /proc
        raise UsageError(f"--out {out}: nothing can be written in {existing}: choose another --out")
    return Machine(
        _UNLIMITED if hard == resource.RLIM_INFINITY else hard,
        ports[1] - ports[0] + 1 if ports else None,
        backlog[0] if backlog else None,
        memory[0] * 1024 if memory else None,
        disk.free,
    )


def _numbers(file: str, behind: str = "") -> list[int]:
    """Return the numbers of the line of a file in /proc that begins so; none without the file."""
    try:
        text = Path("/proc", file).read_text()
    except OSError:
        return []
    line = re.search(f"^{behind}(.*)", text, re.MULTILINE)
    return [int(each) for each in re.findall(r"\d+", line[1])] if line else []


# -- the needs ------------------------------------------------------------------------------------


def _answers(groups: Sequence[GroupSchedule], topics: int, machine: Machine) -> Iterator[Need]:
    """Yield what answers take, and the files of the run."""
    answers = sum(len(group.starts) for group in groups)
    size = sum(len(group.starts) * group.answer_bytes for group in groups)
    more = ", and what clients ask for later" if any(group.later for group in groups) else ""
    yield Need(f"bytes of {plural(answers, 'answer')}{more}", size, unit="bytes")
    yield Need("bytes under way at once, at most", most_at_once(groups), unit="bytes")
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
    """Yield connections and ports, and what each process needs."""
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
    yield Need("ports of a source address", ports, machine.ports, remedy)
    at_once = min(clients, CONNECTING_AT_ONCE * tasks)
    remedy = "raise net.core.somaxconn, or use fewer --tasks"
    yield Need("connecting at once", at_once, machine.backlog, remedy)
    read = sum({group.answer_bytes for group in groups})
    processes = [("worker", tasks, math.ceil(connections / tasks), read, options.master is None)]
    if proxy:
        # A tunnel is a connection of its own; the others' are the proxy's.
        of_broker = tunnels + (clients if servers.profile == "pulsar" else _SHARED_CONNECTIONS)
        held = _limits(servers.proxy or {})
        processes.append(("proxy", 1, connections + of_broker, held, own))
    held = _limits(servers.broker) + topics * _PER_TOPIC_BYTES
    yield from _processes([*processes, ("broker", 1, of_broker, held, own)], machine)


def _processes(
    processes: Sequence[tuple[str, int, int, int, bool]], machine: Machine
) -> Iterator[Need]:
    """Yield what processes need: their name, number, sockets and bytes held, and if they are ours.

    Those of somebody else, or on another machine, have limits of their own.
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


def _limits(keys: Mapping[str, str]) -> int:
    """Return the bytes of topic lists that a server with these keys may hold."""
    return sum(int(keys.get(name) or 100) for name in LIMIT_KEYS) * _MB


# -- for people and programs ----------------------------------------------------------------------


def told(run: DryRun) -> dict[str, Any]:
    """Return what ``--dry-run --json`` prints."""
    groups = [
        {
            **vars(group),
            "starts": len(group.starts),
            "first_start_seconds": float(group.starts[0]),
            "last_start_seconds": float(group.starts[-1]),
            "starts_per_second": group.rates(_PARTS, last_start(run.groups)),
        }
        for group in run.groups
    ]
    return {
        "scenario": run.document.name,
        "seconds_at_most": run.seconds,
        "groups": groups,
        "needs": [asdict(each) for each in run.needs],
        "obstacles": run.obstacles,
        "warnings": list(run.document.warnings),
    }


def duration(run: DryRun) -> str:
    """Say how long the run takes, by its phases."""
    phases, repeats = run.document.phases, run.document.repeats
    named = {
        "warm-up": phases.warm_up,
        "measuring": phases.measure,
        "hold": phases.hold,
        "draining": phases.drain,
    }
    parts = ", ".join(f"{name} {format_seconds(s)}" for name, s in named.items() if s)
    times = f"{plural(repeats, 'run')} of " if repeats > 1 else ""
    lasting = phases.hold or any(group.lasts for group in run.document.clients)
    early = "" if lasting else ", and less if all clients are done before"
    return f"It takes at most {format_seconds(run.seconds)} ({times}{parts}){early}."


def needs_table(run: DryRun) -> tuple[list[str], list[list[str]]]:
    """Return what the run needs beside what the machine has."""
    rows = [[each.what, each.text(each.needed), each.text(each.has)] for each in run.needs]
    return ["needs", "", "of"], rows
