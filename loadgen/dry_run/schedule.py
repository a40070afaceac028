"""The schedule of a scenario, of any kind: when requests begin, and what they make servers send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.demo.plan import mean_answer_bytes
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, client_plans
from loadgen.scenarios.registry import SCENARIOS
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.scenarios.storm.scenario import client_plans as storm_plans
from loadgen.stuck_peers.scenario import BesidePeersScenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from loadgen.cluster import ClusterPlan
    from loadgen.scenario import NamespaceExpectation, Scenario
    from loadgen.scenarios.discovery.scenario import Group

_SMALL_ANSWER_BYTES = 100
"""Of a lookup, a receipt, or what else is no list."""


@dataclass(frozen=True)
class GroupSchedule:
    """The requests of one group of clients.

    Attributes:
        starts: When requests are due, in ascending order, relative to the agreed start; one at
            least.
        sockets: Their connections through a proxy.
        tunnels: Those of them that it passes on to a broker.
        answer_bytes: Of each answer, on the wire.
        reading_seconds: How long a client takes to read one.
        never_read: True if answers stay unread.
        later: True if clients ask again, at moments that only the run decides.
    """

    name: str
    clients: int
    sockets: int
    starts: NDArray[np.float64]
    answer_bytes: int
    reading_seconds: float = 0.0
    never_read: bool = False
    later: bool = False
    tunnels: int = 0

    @property
    def asking(self) -> int:
        """Connections that a proxy answers itself."""
        return self.sockets - self.tunnels

    @property
    def direct(self) -> int:
        """Connections without a proxy: one does for both, where clients have two."""
        return self.asking or self.sockets

    @property
    def last_seconds(self) -> float:
        """The moment of the last start."""
        return float(self.starts[-1])

    def rates(self, bins: int, until_seconds: float) -> list[float]:
        """Return how many start each second in so many equal parts of a time."""
        width = until_seconds / bins
        counts, _ = np.histogram(self.starts, bins, (0.0, until_seconds))
        return [float(count) / width for count in counts]


def group_schedules(scenario: Scenario, cluster: ClusterPlan) -> list[GroupSchedule]:
    """Return the schedule of each group of a scenario."""
    if isinstance(scenario, DiscoveryScenario):
        return list(_of_groups(scenario, cluster))
    answer = _answer_bytes(scenario, cluster)
    rate = scenario.read_rate_bytes_per_second
    reading = answer / rate if rate else 0.0
    beside = scenario.peers.count if isinstance(scenario, BesidePeersScenario) else 0
    sockets = scenario.connections - beside
    found = [
        GroupSchedule(
            "clients",
            scenario.clients,
            sockets,
            _starts(scenario),
            answer,
            reading,
            later=getattr(scenario, "requests_per_client", 1) > 1,
            tunnels=sockets if scenario.tunnels else 0,
        )
    ]
    if isinstance(scenario, BesidePeersScenario) and beside:
        found.append(_peers(scenario, answer))
    return found


def _of_groups(scenario: DiscoveryScenario, cluster: ClusterPlan) -> Iterator[GroupSchedule]:
    starts: dict[str, list[float]] = {group.name: [] for group in scenario.groups}
    for plan in client_plans(scenario, 0, 1):
        # Whose turn comes when another has ended starts at the earliest with the first.
        starts[plan.group.name].append(plan.start_seconds or 0.0)
    end = scenario.phases.end_seconds
    for group in scenario.groups:
        namespaces = scenario.namespaces[slice(*(group.namespaces or (None, None)))]
        answer = _bytes_of_lists(namespaces[: group.clients], cluster)
        rate = group.reader.rate_bytes_per_second
        yield GroupSchedule(
            group.name,
            group.clients,
            group.clients * group.connections_each,
            _repeated(group, np.sort(np.asarray(starts[group.name], dtype=float)), end),
            answer,
            answer / rate if rate else 0.0,
            group.reader.never,
            later=group.family != "once",
            tunnels=group.clients * (group.connections_each - 1),
        )


def _repeated(group: Group, starts: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """Return all moments at which a group's clients ask: of a family, the first of each."""
    if group.repeat_seconds:
        beats = np.arange(0.0, max(0.0, end), group.repeat_seconds)
        starts = (starts[:, None] + beats[None, :]).ravel()
        starts = np.sort(starts[starts <= end])
    return np.repeat(starts, group.pipelined)


def _starts(scenario: Scenario) -> NDArray[np.float64]:
    if isinstance(scenario, StormScenario):
        plans = storm_plans(scenario, 0, 1)
        return np.sort(np.asarray([plan.intended_start_seconds for plan in plans], dtype=float))
    interval = getattr(scenario, "interval_seconds", None)
    duration = getattr(scenario, "duration_seconds", None)
    if interval is None or duration is None:
        return np.zeros(scenario.clients)
    step = interval / scenario.clients
    return np.asarray(np.arange(0.0, duration - 1e-9, step), dtype=float)


def _peers(scenario: BesidePeersScenario, answer: int) -> GroupSchedule:
    peers = scenario.peers
    pipelined = getattr(scenario, "stuck_pipelined", 1)
    return GroupSchedule(
        "peers that do not read",
        peers.count,
        peers.count,
        np.full(peers.count * pipelined, peers.at_seconds),
        answer,
        never_read=True,
    )


def _answer_bytes(scenario: Scenario, cluster: ClusterPlan) -> int:
    if not SCENARIOS[scenario.kind].words.lists_topics:
        size: Any = getattr(scenario, "message_bytes", _SMALL_ANSWER_BYTES)
        return int(size)
    return _bytes_of_lists(scenario.namespaces[: scenario.clients], cluster)


def _bytes_of_lists(asked: Sequence[NamespaceExpectation], cluster: ClusterPlan) -> int:
    """Return the mean size of a list; where nobody knows how long it is, of the cluster's plan."""
    usual = cluster.topics.per_namespace
    known = [usual if each.topics is None else each.topics for each in asked]
    names = sum(known)
    return mean_answer_bytes(names, names * cluster.topics.mean_name_bytes, len(known))
