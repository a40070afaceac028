"""The part that scenarios with stuck peers have in common: a schedule, and when peers are there."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import model_validator

from loadgen.clients.schedule import require_few_requests, scheduled_requests
from loadgen.scenario import BufferSize, ClientPlan, Duration, ReadRate, Scenario, source_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.scenario import NamespaceExpectation


@dataclass(frozen=True)
class PeersWanted:
    """The stuck peers of a scenario, under one name whatever its options call them.

    Attributes:
        at_option: The option that says when they begin.
        namespaces: Peer j has number j modulo their count.
        seconds: How long they stay; 0: to the end.
        receive_buffer_bytes: SO_RCVBUF of their connections; 0 leaves the kernel's.
    """

    count: int
    at_option: str
    at_seconds: float
    seconds: float
    receive_buffer_bytes: int
    namespaces: tuple[NamespaceExpectation, ...]

    @property
    def until_seconds(self) -> float | None:
        """The moment at which they leave of their own accord; None: the end of the run."""
        return self.at_seconds + self.seconds if self.seconds else None


class BesidePeersScenario(Scenario):
    """Healthy clients on a schedule, and peers that do not read."""

    more_time: ClassVar[str] = "more --interval-seconds"

    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    interval_seconds: float
    duration_seconds: Duration

    @property
    @abstractmethod
    def peers(self) -> PeersWanted:
        """The stuck peers."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        peers = self.peers
        if peers.count and peers.at_seconds >= self.duration_seconds:
            raise ValueError(
                f"{peers.at_option} {peers.at_seconds:g} is not before the end of "
                f"--duration-seconds {self.duration_seconds:g}"
            )
        require_few_requests(self, "--clients, --interval-seconds and --duration-seconds")
        return self

    @property
    def planned_requests(self) -> int:
        """Number of requests that the schedule holds."""
        return scheduled_requests(self)

    @property
    def connections(self) -> int:
        """Number of connections at once, those of the peers included."""
        return self.clients + self.peers.count


def peer_plans(
    scenario: BesidePeersScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the stuck peers of one task: every ``tasks``-th, from number ``task``.

    A peer's number counts from 0 beside those of the healthy clients; its intended start is when
    it begins.
    """
    peers = scenario.peers
    for peer in range(task, peers.count, tasks):
        yield ClientPlan(
            client=peer,
            namespace=peers.namespaces[peer % len(peers.namespaces)],
            intended_start_seconds=peers.at_seconds,
            source_address=source_address(scenario.clients + peer) if loopback else None,
        )
