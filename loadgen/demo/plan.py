"""The plan of the demo: its runs, the settings of their servers, and what scales with size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.own_servers.local import local_broker, local_proxy
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, Group, Phases, Reader
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.scenario import NamespaceExpectation
    from loadgen.places.server_process import ServerProcess

LIMIT_MB = 50
SOCKET_BUFFER_BYTES = 65_536
TOPICS_PER_NAMESPACE = 10_000
CLIENT_TIMEOUT_SECONDS = 120.0
# The size at which the demo was thought out: a thousand answers of a million bytes.
FULL_STORM_BYTES = 1_000_000_000
FULL_PENDING_BYTES = 300 * MB_BYTES
# Under this share of the full storm, memory that has nothing to do with answers hides the ratio.
JUDGED_SHARE = 0.5
# One entry of the answer is a tag and a length beside the name; the frame has a head and a hash.
_ENTRY_OVERHEAD_BYTES = 2
_FRAME_OVERHEAD_BYTES = 40


@dataclass(frozen=True)
class DemoRun:
    """One run. ``limit_mb`` is for heap and direct, on each of its servers; 0 is off."""

    name: str
    label: str
    profile: str
    limit_mb: int


RUNS = (
    DemoRun("off", "Limits off", "pulsar", 0),
    DemoRun("pulsar", "Limits on, as in Pulsar", "pulsar", LIMIT_MB),
    DemoRun("floodgate", "Limits on, Floodgate", "floodgate", LIMIT_MB),
)

# The same storm as in "pulsar", of consumers that retry after a refusal.
RETURNING_RUN = DemoRun("pulsar-returning", "As in Pulsar, clients retry", "pulsar", LIMIT_MB)
RETURNING_RESTART_SECONDS = 5.0
# The first are refused after 25 s; so long until they have asked again, and wait once more.
RETURNING_MEASURE_SECONDS = 60.0

# The second part: the case that was recorded of a real broker, in the time that it takes to show.
STUCK_LIMIT_MB = 1
STUCK_TOPICS = 4000
STUCK_NAME_BYTES = 93
STUCK_PERMIT_TIMEOUT_MILLIS = 3000
STUCK_RUNS = (
    DemoRun("stuck-pulsar", "As in Pulsar", "pulsar", STUCK_LIMIT_MB),
    DemoRun("stuck-floodgate", "Floodgate", "floodgate", STUCK_LIMIT_MB),
)


@dataclass(frozen=True)
class StormSize:
    """The size of the demo's storm: clients, and the mean size of an answer."""

    clients: int
    answer_bytes: int

    @property
    def share_of_full(self) -> float:
        """All answers together as a share of the full demo's, at most 1."""
        return min(1.0, self.clients * self.answer_bytes / FULL_STORM_BYTES)

    @property
    def required_pending_bytes(self) -> int:
        """Pending outbound bytes that the run without limits must reach to show anything."""
        return round(FULL_PENDING_BYTES * self.share_of_full)

    @property
    def judges_memory(self) -> bool:
        """True if the storm is large enough to compare the memory of two runs."""
        return self.share_of_full >= JUDGED_SHARE


def default_namespaces(topics: int) -> int:
    """Return the number of namespaces at which an answer has ``TOPICS_PER_NAMESPACE`` topics."""
    return max(1, math.ceil(topics / TOPICS_PER_NAMESPACE))


def mean_answer_bytes(topics: int, name_bytes: int, namespaces: int) -> int:
    """Return the mean size of one namespace's answer on the wire, from the corpus's totals."""
    entries = name_bytes + topics * _ENTRY_OVERHEAD_BYTES
    return entries // max(1, namespaces) + _FRAME_OVERHEAD_BYTES


def broker_settings(run: DemoRun) -> dict[str, str]:
    """Return the broker's configuration in one run, in Pulsar's keys."""
    return {**local_broker(), **run_settings(run)}


def stuck_broker_settings(run: DemoRun) -> dict[str, str]:
    """Return the broker's configuration in one run of the second part, in Pulsar's keys."""
    timeouts = {
        f"maxTopicListInFlight{kind}MemSizePermitsAcquireTimeoutMillis": str(
            STUCK_PERMIT_TIMEOUT_MILLIS
        )
        for kind in ("Heap", "Direct")
    }
    return {**broker_settings(run), **timeouts}


def stuck_scenario(service_url: str, namespace: NamespaceExpectation) -> StuckScenario:
    """Return the second part's scenario: 10 listings a second, and one client that reads nothing.

    That client connects between two listings, after a second without it, and disconnects before
    the end, so that the figures before, beside and after it can be compared.
    """
    return StuckScenario(
        service_url=service_url,
        namespaces=(namespace,),
        clients=10,
        interval_seconds=1.0,
        duration_seconds=8.0,
        stuck_peers=1,
        stuck_pipelined=64,
        stuck_at_seconds=1.05,
        stuck_seconds=6.0,
    )


def returning_scenario(
    namespaces: Sequence[NamespaceExpectation],
    clients: int,
    read_rate_bytes_per_second: float,
) -> DiscoveryScenario:
    """Return the storm of Java consumers whose programs restart when they are refused.

    Clients that request once disconnect after a refusal, and the queue becomes shorter. These
    consumers retry after five seconds, so it does not: there are more requests, and hardly more
    answers.
    """
    group = Group(
        name="java-watch",
        family="java-watch",
        clients=clients,
        restart_seconds=RETURNING_RESTART_SECONDS,
        reader=Reader(
            rate_bytes_per_second=read_rate_bytes_per_second,
            receive_buffer_bytes=SOCKET_BUFFER_BYTES,
        ),
    )
    return DiscoveryScenario(
        namespaces=tuple(namespaces),
        groups=(group,),
        phases=Phases(measure_seconds=RETURNING_MEASURE_SECONDS, drain_seconds=0.0),
    )


def proxy_settings(run: DemoRun, broker: ServerProcess) -> Mapping[str, str]:
    """Return the proxy's configuration in one run, in front of ``broker``."""
    return {**local_proxy(broker.service_url, broker.web_url), **run_settings(run)}


def run_settings(run: DemoRun) -> dict[str, str]:
    """Return the settings that make a run what it is, on broker and proxy alike."""
    return {
        "floodgateProfile": run.profile,
        "maxTopicListInFlightHeapMemSizeMB": str(run.limit_mb),
        "maxTopicListInFlightDirectMemSizeMB": str(run.limit_mb),
        # Left to the kernel, the loopback swallows each answer and hides the effect.
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
    }
