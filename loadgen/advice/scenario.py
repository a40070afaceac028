"""The scenario of an advice: the same for virtual time, for real storms, and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from limiter.memory.size_estimate import BYTES_PER_NAME
from loadgen.advice.goal import LONGEST_SECONDS
from loadgen.advice.workload import NEVER, size_classes
from loadgen.cluster import ClusterPlan, FurtherTopics, TopicsPlan
from loadgen.scenarios.discovery.arrivals import AtOnce, Constant
from loadgen.scenarios.discovery.scenario import Group, Reader
from loadgen.topics.plan import SHORTEST_NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.advice.goal import Goal
    from loadgen.advice.limits import Setting
    from loadgen.advice.workload import NamespaceShape, Workload
    from loadgen.cluster import Profile

RECEIVE_BUFFER_BYTES = 65_536
LONGEST_NAME_BYTES = 512
_ALIKE = 0.02
_WIDTH = 100
_LONGER = 1.5
"""A try lasts so many times the goal's time, to see by how much a goal is missed."""
FASTEST_STARTS = 1_000_000
"""Starts a second; more of them are at once."""


def groups_of(workload: Workload) -> tuple[Group, ...]:
    """Return the groups of clients: of each family those that read, and those that read slowly."""
    return tuple(_groups(workload))


def _groups(workload: Workload) -> Iterator[Group]:
    readers = workload.readers
    for family, count in workload.families.items():
        slow = workload.slow(count)
        for name, clients, rate in (
            (str(family), count - slow, readers.rate),
            (f"{family}-slow", slow, readers.slow_rate),
        ):
            if not clients:
                continue
            yield Group(
                name=name,
                family=family,
                clients=clients,
                operation_timeout_seconds=workload.operation_timeout_seconds,
                period_seconds=workload.period_seconds,
                arrivals=_arrivals(clients, workload.spread_seconds),
                reader=Reader(
                    rate_bytes_per_second=max(0.0, rate),
                    receive_buffer_bytes=_receive_buffer(workload),
                    never=rate == NEVER,
                ),
            )


def _arrivals(clients: int, seconds: float) -> AtOnce | Constant:
    if clients > FASTEST_STARTS * seconds:
        return AtOnce()
    return Constant(kind="constant", per_second=clients / seconds)


def topics_of(workload: Workload) -> TopicsPlan:
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

    first, *further = size_classes([names(each) for each in workload.listed])
    return TopicsPlan(
        namespaces=first[0],
        per_namespace=first[1],
        mean_name_bytes=name_bytes,
        seed=workload.seed,
        further=tuple(
            FurtherTopics(namespaces=count, per_namespace=size) for count, size in further
        ),
    )


def cluster_of(workload: Workload, setting: Setting, profile: Profile) -> ClusterPlan:
    """Return the servers of a setting."""
    buffer = {"floodgateSocketSendBufferBytes": str(_send_buffer(workload))}
    message = {"maxMessageSize": str(workload.max_message_bytes)}
    return ClusterPlan(
        profile=profile,
        broker={**setting.broker.keys(), **buffer, **message},
        proxy={**setting.proxy.keys(), **buffer, **message} if setting.proxy else None,
        topics=topics_of(workload),
        service_times=profile,  # as shipped: a real Pulsar is advised
    )


def document_of(workload: Workload, goal: Goal, setting: Setting, profile: Profile) -> str:
    """Return the scenario document of an advice: what was tried, and what checks it."""
    cluster = cluster_of(workload, setting, profile)
    back = 100 * (1 - goal.refused_share)
    document = {
        "name": "advice",
        "description": f"Checks an advice: {goal}.",
        "kind": "discovery",
        "cluster": cluster.model_dump(mode="json", exclude_none=True),
        "load": {
            "groups": [
                group.model_dump(mode="json", exclude_defaults=True)
                for group in groups_of(workload)
            ],
            "phases": {"measure_seconds": longest_seconds(workload, goal), "drain_seconds": 0.0},
            "timeout_seconds": workload.operation_timeout_seconds,
            "seed": workload.seed,
        },
        "thresholds": [
            f"clients.back.p{back:.10g} <= {goal.back_within_seconds:.10g}s",
            f"requests.refused.rate <= {100 * goal.refused_share:.10g}%",
        ],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def longest_seconds(workload: Workload, goal: Goal) -> float:
    """Return how long a try may last: until the last client that starts has missed the goal."""
    longest = workload.spread_seconds + _LONGER * goal.back_within_seconds
    return min(longest, LONGEST_SECONDS)


def _receive_buffer(workload: Workload) -> int:
    return max(4096, min(RECEIVE_BUFFER_BYTES, workload.readers.network_bytes // 2))


def _send_buffer(workload: Workload) -> int:
    return max(4096, workload.readers.network_bytes - _receive_buffer(workload))
