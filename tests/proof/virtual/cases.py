"""The cases in which virtual time is compared with real runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.cluster import ClusterPlan, TopicsPlan
from loadgen.demo.plan import (
    LIMIT_MB,
    SOCKET_BUFFER_BYTES,
    STUCK_NAME_BYTES,
    STUCK_RUNS,
    STUCK_TOPICS,
    TOPICS_PER_NAMESPACE,
    run_settings,
    stuck_broker_settings,
    stuck_scenario,
)
from loadgen.scenarios.storm.scenario import StormScenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.scenario import NamespaceExpectation, Scenario

    Namespaces = tuple[NamespaceExpectation, ...]

_FULL_CLIENTS, _QUICK_CLIENTS = 1_000, 150


@dataclass(frozen=True)
class Case:
    """One case: a cluster, and what clients do to it.

    Attributes:
        scenario: Makes the scenario for a service URL and the cluster's namespaces.
    """

    name: str
    cluster: ClusterPlan
    scenario: Callable[[str, Namespaces], Scenario]


def cases(*, quick: bool) -> list[Case]:
    """Return the cases; small ones if ``quick``."""
    clients = _QUICK_CLIENTS if quick else _FULL_CLIENTS
    return [
        *(_storm(profile, clients) for profile in ("pulsar", "floodgate")),
        *(_stuck(run.profile) for run in STUCK_RUNS),
        *(_slow_readers(profile) for profile in ("pulsar", "floodgate")),
        *(_hold_and_wait(profile) for profile in ("pulsar", "floodgate")),
    ]


def _limits(megabytes: int) -> dict[str, str]:
    return {
        "maxTopicListInFlightHeapMemSizeMB": str(megabytes),
        "maxTopicListInFlightDirectMemSizeMB": str(megabytes),
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
    }


def _storm(profile: str, clients: int) -> Case:
    """The demo's storm; a small one has limits that are as much too small."""
    keys = _limits(max(1, LIMIT_MB * clients // _FULL_CLIENTS))
    topics = TopicsPlan(
        namespaces=100 * clients // _FULL_CLIENTS, per_namespace=TOPICS_PER_NAMESPACE, seed=7
    )
    return Case(
        f"storm, {profile}",
        ClusterPlan(profile=profile, broker=keys, proxy=keys, topics=topics),  # type: ignore[arg-type]
        lambda url, namespaces: StormScenario(
            service_url=url, namespaces=namespaces, clients=clients
        ),
    )


def _stuck(profile: str) -> Case:
    """The demo's peer that does not read."""
    run = next(each for each in STUCK_RUNS if each.profile == profile)
    settings = stuck_broker_settings(run)
    kept = {**run_settings(run), **{k: v for k, v in settings.items() if "Timeout" in k}}
    del kept["floodgateProfile"]
    topics = TopicsPlan(
        namespaces=1, per_namespace=STUCK_TOPICS, mean_name_bytes=STUCK_NAME_BYTES, seed=7
    )
    return Case(
        f"stuck, {profile}",
        ClusterPlan(profile=profile, broker=kept, topics=topics),  # type: ignore[arg-type]
        lambda url, namespaces: stuck_scenario(url, namespaces[0]),
    )


def _slow_readers(profile: str) -> Case:
    """Readers of 27 kB/s whose answers outlast the permits' timeout, without a proxy.

    They begin within two seconds. Asked all at once they would all time out in the same
    milliseconds, those who hold heap and wait for direct memory and those who wait for their heap:
    of six such runs three had 15 answers, one 23 and two 26. At 30 kB/s the first give back what
    they hold at 27.5 s, and one in twenty, of whom the kernel took more to begin with, at 25.5 s:
    in the midst of the timeouts. At 27 kB/s all do so after the last of them.
    """
    keys = _limits(15)
    topics = TopicsPlan(namespaces=1, per_namespace=TOPICS_PER_NAMESPACE, seed=7)
    return Case(
        f"slow-readers, {profile}",
        ClusterPlan(profile=profile, broker=keys, topics=topics),  # type: ignore[arg-type]
        lambda url, namespaces: StormScenario(
            service_url=url,
            namespaces=namespaces,
            clients=50,
            read_rate_bytes_per_second=27_000.0,
            spread_seconds=2.0,
        ),
    )


def _hold_and_wait(profile: str) -> Case:
    """More heap than direct memory: who holds the one waits for the other.

    Five answers of 15 are sent at a time, some eight seconds each: so the last of profile floodgate
    are granted before the timeout of 25 s. Of 20 answers they would not be, and go on waiting as
    long as at each look, ten a second, somebody has read nothing for half a second, which is a
    matter of milliseconds: in runs over sockets 76, 68 and 76 of 80 were answered.
    """
    keys = _limits(20) | {"maxTopicListInFlightDirectMemSizeMB": "5"}
    topics = TopicsPlan(namespaces=15, per_namespace=TOPICS_PER_NAMESPACE, seed=7)
    return Case(
        f"hold-and-wait, {profile}",
        ClusterPlan(profile=profile, broker=keys, topics=topics),  # type: ignore[arg-type]
        lambda url, namespaces: StormScenario(
            service_url=url, namespaces=namespaces, clients=80, spread_seconds=5.0
        ),
    )
