"""What the demo runs: the three runs, the settings of their servers, and what scales with size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.processes import ServerProcess

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
    """One of the three runs. ``limit_mb`` is for heap and direct, on broker and proxy; 0 is off."""

    name: str
    label: str
    profile: str
    limit_mb: int


RUNS = (
    DemoRun("off", "Limits off", "pulsar", 0),
    DemoRun("pulsar", "Limits on, as in Pulsar", "pulsar", LIMIT_MB),
    DemoRun("floodgate", "Limits on, Floodgate", "floodgate", LIMIT_MB),
)


@dataclass(frozen=True)
class StormSize:
    """How large the demo's storm is: clients, and the mean size of an answer."""

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
        """Whether the storm is large enough to compare the memory of two runs."""
        return self.share_of_full >= JUDGED_SHARE


def default_namespaces(topics: int) -> int:
    """As many namespaces as keep each answer at ``TOPICS_PER_NAMESPACE`` topics."""
    return max(1, math.ceil(topics / TOPICS_PER_NAMESPACE))


def mean_answer_bytes(topics: int, name_bytes: int, namespaces: int) -> int:
    """The mean size of one namespace's answer on the wire, from the corpus's totals."""
    entries = name_bytes + topics * _ENTRY_OVERHEAD_BYTES
    return entries // max(1, namespaces) + _FRAME_OVERHEAD_BYTES


def broker_settings(run: DemoRun) -> dict[str, str]:
    """The broker's configuration in one run, in Pulsar's keys."""
    return {
        "brokerServicePort": "0",
        "metadataStoreUrl": "memory:local",
        **_server_settings(run),
    }


def proxy_settings(run: DemoRun, broker: ServerProcess) -> Mapping[str, str]:
    """The proxy's configuration in one run, in front of ``broker``."""
    return {
        "servicePort": "0",
        "brokerServiceURL": broker.service_url,
        "brokerWebServiceURL": broker.web_url,
        **_server_settings(run),
    }


def _server_settings(run: DemoRun) -> dict[str, str]:
    """What broker and proxy have in common."""
    return {
        "webServicePort": "0",
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        "floodgateProfile": run.profile,
        "maxTopicListInFlightHeapMemSizeMB": str(run.limit_mb),
        "maxTopicListInFlightDirectMemSizeMB": str(run.limit_mb),
        # Left to the kernel, the loopback swallows each answer and hides the effect.
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
    }
