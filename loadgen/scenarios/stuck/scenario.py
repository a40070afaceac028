"""What the scenario ``stuck`` is: healthy clients on a schedule, peers that ask and do not read.

The schedule is open: a request is due at its moment, whatever became of the one before, and its
latency counts from that moment. So a server that keeps clients waiting cannot make them ask less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from loadgen.scenario import ClientPlan, ListingScenario, NamespaceExpectation, source_address

if TYPE_CHECKING:
    from collections.abc import Iterator

# One row of 200 bytes each, held until the run is over.
MOST_REQUESTS = 2_000_000


class StuckScenario(ListingScenario):
    """Healthy clients that list again and again, while peers pipeline listings and read nothing.

    Attributes:
        stuck_namespaces: What stuck peers ask for; peer *j* asks for number *j* modulo their
            count. Empty: what the healthy clients ask for.
        clients: Healthy clients, a connection each.
        interval_seconds: Each healthy client's listings are due this far apart; the clients
            take turns within it.
        duration_seconds: Listings are due from 0 until then.
        read_rate_bytes_per_second: How fast a healthy client reads; 0 reads unlimited.
        receive_buffer_bytes: SO_RCVBUF of a healthy connection; 0 leaves the kernel's own.
        timeout_seconds: How long a healthy client waits for an answer, from when it was due.
        stuck_peers: Peers that ask and do not read; 0 runs the healthy clients alone.
        stuck_pipelined: Listings that each stuck peer asks for, all in one go.
        stuck_read_rate_bytes_per_second: How fast a stuck peer reads; 0 reads nothing.
        stuck_receive_buffer_bytes: SO_RCVBUF of a stuck connection; 0 leaves the kernel's own.
        stuck_at_seconds: When stuck peers ask; what is due before shows how it is without them.
        stuck_seconds: How long they stay unless the server closes them; 0 stays to the end.
    """

    kind: Literal["stuck"] = "stuck"
    stuck_namespaces: tuple[NamespaceExpectation, ...] = ()
    clients: Annotated[int, Field(ge=1, le=100_000)] = 10
    interval_seconds: Annotated[float, Field(ge=0.001, le=86_400)] = 1.0
    duration_seconds: Annotated[float, Field(gt=0, le=86_400)] = 20.0
    read_rate_bytes_per_second: Annotated[float, Field(ge=0)] = 0.0
    receive_buffer_bytes: Annotated[int, Field(ge=0, le=1 << 30)] = 0
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 30.0
    stuck_peers: Annotated[int, Field(ge=0, le=100_000)] = 1
    stuck_pipelined: Annotated[int, Field(ge=1, le=100_000)] = 64
    stuck_read_rate_bytes_per_second: Annotated[float, Field(ge=0)] = 0.0
    stuck_receive_buffer_bytes: Annotated[int, Field(ge=0, le=1 << 30)] = 0
    stuck_at_seconds: Annotated[float, Field(ge=0, le=86_400)] = 2.0
    stuck_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.stuck_peers and self.stuck_at_seconds >= self.duration_seconds:
            raise ValueError(
                f"--stuck-at-seconds {self.stuck_at_seconds:g} is not before the end of "
                f"--duration-seconds {self.duration_seconds:g}"
            )
        requests = self.clients * (self.duration_seconds / self.interval_seconds)
        if requests > MOST_REQUESTS:
            raise ValueError(
                f"--clients, --interval-seconds and --duration-seconds make {requests:,.0f} "
                f"requests: one run keeps at most {MOST_REQUESTS:,}"
            )
        return self

    @property
    def stuck_until_seconds(self) -> float | None:
        """When stuck peers leave of their own accord; None: at the end of the run."""
        return self.stuck_at_seconds + self.stuck_seconds if self.stuck_seconds else None


def healthy_plans(
    scenario: StuckScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the healthy clients of one task: every ``tasks``-th, from number ``task``.

    A client's intended start is when its first listing is due.
    """
    step = scenario.interval_seconds / scenario.clients
    for client in range(task, scenario.clients, tasks):
        yield ClientPlan(
            client=client,
            namespace=scenario.namespaces[client % len(scenario.namespaces)],
            intended_start_seconds=client * step,
            source_address=source_address(client) if loopback else None,
        )


def due_moments(scenario: StuckScenario, client: int) -> Iterator[float]:
    """Yield when a healthy client's listings are due, in seconds after T0."""
    first = client * (scenario.interval_seconds / scenario.clients)
    left = scenario.duration_seconds - first
    for number in range(max(0, math.ceil(round(left / scenario.interval_seconds, 9)))):
        yield first + number * scenario.interval_seconds


def peer_plans(
    scenario: StuckScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the stuck peers of one task: every ``tasks``-th, from number ``task``.

    A peer's number counts from 0 beside those of the healthy clients; its intended start is when
    it asks.
    """
    namespaces = scenario.stuck_namespaces or scenario.namespaces
    for peer in range(task, scenario.stuck_peers, tasks):
        yield ClientPlan(
            client=peer,
            namespace=namespaces[peer % len(namespaces)],
            intended_start_seconds=scenario.stuck_at_seconds,
            source_address=source_address(scenario.clients + peer) if loopback else None,
        )
