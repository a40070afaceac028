"""The needs of a run: connections, descriptors, ports, bytes, memory and disk.

All of it follows from the scenario; sizes of memory and disk are estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.clients.connect import CONNECTING_AT_ONCE
from loadgen.dry_run.schedule import GroupSchedule, group_schedules
from loadgen.scenario import CLIENTS_PER_SOURCE_ADDRESS, source_address

if TYPE_CHECKING:
    from loadgen.cluster import ClusterPlan
    from loadgen.scenario import Scenario

LOOPBACK = "127.0.0.1"
_BEAT_SECONDS = 0.1
"""Answers of one beat are under way together, however fast they are read."""
_OWN_DESCRIPTORS = {"worker": 64, "broker": 64, "proxy": 64}
_SHARED_CONNECTIONS = 8
"""Connections of a proxy of profile ``floodgate`` to its broker, whatever its clients are."""
_MB = 1 << 20
_IDLE_BYTES = {"worker": 70 * _MB, "broker": 160 * _MB, "proxy": 65 * _MB}
_PER_CONNECTION_BYTES = 20_000
"""Measured with 10,000 sockets of all families: 12 kB in a proxy, 20 kB in a broker."""
_PER_TOPIC_BYTES = 150
_TOPIC_FILE_BYTES = 30
_ROW_BYTES = 60


@dataclass(frozen=True)
class ProcessNeeds:
    """One process, or each of several alike.

    Attributes:
        own: True if this run starts it, so that this machine's limits are its.
    """

    name: str
    count: int
    connections: int
    descriptors: int
    memory_bytes: int
    own: bool = True


@dataclass(frozen=True)
class Needs:
    """The needs of a run.

    Attributes:
        through_proxy: Whether clients reach the broker through a proxy.
        connections: Sockets of all clients; with one of each task that looks brokers up, where
            all of them are tunnels.
        tunnels: Those of them that a proxy carries through to its broker.
        ports: Connections from each source address.
        answers: Requests that are known before the run.
        answer_bytes: All their answers together.
        bytes_at_once: The most of them under way at one moment, if servers were infinitely fast.
        connecting_at_once: The most connections that wait to be accepted.
        topics: Made for the run; 0: none.
        disk_bytes: Of topics and rows.
    """

    groups: tuple[GroupSchedule, ...]
    through_proxy: bool
    connections: int
    tunnels: int
    ports: dict[str, int]
    processes: tuple[ProcessNeeds, ...]
    answers: int
    answer_bytes: int
    bytes_at_once: int
    connecting_at_once: int
    topics: int
    disk_bytes: int

    @property
    def memory_bytes(self) -> int:
        """Of all processes that this run starts."""
        return sum(each.memory_bytes * each.count for each in self.processes if each.own)

    @property
    def last_start_seconds(self) -> float:
        """The moment of the last request that is known before the run."""
        return max(group.last_seconds for group in self.groups)


@dataclass(frozen=True)
class RunShape:
    """The run that a scenario is part of.

    Attributes:
        tasks: Processes that share the clients.
        proxy: Whether clients go through a proxy.
        own_servers: Whether the cluster is started for it.
        makes_topics: Whether its topics are made as well.
        loopback: Whether servers are on this machine's loopback.
        local_workers: Whether the tasks run on this machine.
        sockets: False in virtual time, which needs neither descriptors nor ports.
    """

    tasks: int
    proxy: bool
    own_servers: bool = False
    makes_topics: bool = False
    loopback: bool = True
    local_workers: bool = True
    sockets: bool = True


def needs_of(scenario: Scenario, cluster: ClusterPlan, shape: RunShape) -> Needs:
    """Reckon the needs of a run."""
    groups = tuple(group_schedules(scenario, cluster))
    clients = sum(group.clients for group in groups)
    tunnels, connections = 0, sum(group.direct for group in groups)
    if shape.proxy:
        lookups = 0 if all(group.asking for group in groups) else shape.tasks
        tunnels = sum(group.tunnels for group in groups)
        connections = sum(group.sockets for group in groups) + lookups
    answers = sum(len(group.starts) for group in groups)
    topics = cluster.topics.topics if shape.own_servers and shape.makes_topics else 0
    disk = topics * _TOPIC_FILE_BYTES + answers * _ROW_BYTES
    return Needs(
        groups,
        shape.proxy,
        connections,
        tunnels,
        _ports(clients, connections, loopback=shape.loopback) if shape.sockets else {},
        tuple(_processes(groups, cluster, shape, connections, tunnels)) if shape.sockets else (),
        answers,
        sum(len(group.starts) * group.answer_bytes for group in groups),
        _most_at_once(groups),
        min(connections, CONNECTING_AT_ONCE * shape.tasks) if shape.sockets else 0,
        topics,
        disk,
    )


def _processes(
    groups: tuple[GroupSchedule, ...],
    cluster: ClusterPlan,
    shape: RunShape,
    connections: int,
    tunnels: int,
) -> list[ProcessNeeds]:
    largest = sum({group.answer_bytes for group in groups})
    share = math.ceil(connections / shape.tasks)
    found = [_process("worker", share, largest, count=shape.tasks, own=shape.local_workers)]
    of_broker = connections
    if shape.proxy:
        # A tunnel is a connection of its own; the others' are the proxy's.
        asking = connections - tunnels
        of_broker = tunnels + (asking if cluster.profile == "pulsar" else _SHARED_CONNECTIONS)
        held = _limits(cluster.proxy or {})
        found.append(_process("proxy", connections + of_broker, held, own=shape.own_servers))
    held = _limits(cluster.broker) + cluster.topics.topics * _PER_TOPIC_BYTES
    found.append(_process("broker", of_broker, held, own=shape.own_servers))
    return found


def _process(
    name: str, connections: int, held_bytes: int, *, count: int = 1, own: bool = True
) -> ProcessNeeds:
    return ProcessNeeds(
        name,
        count,
        connections,
        connections + _OWN_DESCRIPTORS[name],
        _IDLE_BYTES[name] + connections * _PER_CONNECTION_BYTES + held_bytes,
        own,
    )


def _limits(keys: Any) -> int:  # noqa: ANN401
    """Return the bytes of topic lists that a server with these keys may hold."""
    names = ("maxTopicListInFlightHeapMemSizeMB", "maxTopicListInFlightDirectMemSizeMB")
    return sum(int(keys.get(name) or 100) for name in names) * _MB


def _ports(clients: int, connections: int, *, loopback: bool) -> dict[str, int]:
    """Return how many connections come from each source address."""
    each = connections / max(1, clients)
    found = {}
    for first in range(0, clients, CLIENTS_PER_SOURCE_ADDRESS if loopback else max(1, clients)):
        size = min(CLIENTS_PER_SOURCE_ADDRESS if loopback else clients, clients - first)
        address = (source_address(first) or LOOPBACK) if loopback else "this machine"
        found[address] = math.ceil(size * each)
    return found


def _most_at_once(groups: tuple[GroupSchedule, ...]) -> int:
    """Return the most bytes of answers that are under way at one moment."""
    moments, changes = [], []
    for group in groups:
        begun = np.floor(group.starts / _BEAT_SECONDS + 1e-6).astype(np.int64)
        ended = begun + max(1, math.ceil(group.reading_seconds / _BEAT_SECONDS))
        moments += [begun] if group.never_read else [begun, ended]
        size = float(group.answer_bytes)
        changes.append(np.full(len(begun), size))
        if not group.never_read:
            changes.append(np.full(len(ended), -size))
    times, sizes = np.concatenate(moments), np.concatenate(changes)
    # What ends and begins at the same moment does not add up.
    order = np.lexsort((sizes, times))
    return int(np.max(np.cumsum(sizes[order]), initial=0.0))
