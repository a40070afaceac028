"""The scenario ``stuck``: healthy clients on a schedule, and peers that ask and do not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import require_few_requests
from loadgen.scenario import (
    BufferSize,
    ClientPlan,
    Duration,
    Moment,
    NamespaceExpectation,
    ReadRate,
    Scenario,
    source_address,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class StuckScenario(Scenario):
    """Healthy clients that list again and again, while peers pipeline listings and read nothing.

    Attributes:
        stuck_namespaces: What stuck peers ask for; peer *j* asks for number *j* modulo their
            count. Empty: what the healthy clients ask for.
        interval_seconds: Each healthy client's listings are due this far apart; the clients
            take turns within it.
        duration_seconds: Listings are due from 0 until then.
        stuck_peers: Peers that ask and do not read; 0 runs the healthy clients alone.
        stuck_pipelined: Listings that each stuck peer asks for, all in one go.
        stuck_read_rate_bytes_per_second: How fast a stuck peer reads; 0 reads nothing.
        stuck_receive_buffer_bytes: SO_RCVBUF of a stuck connection; 0 leaves the kernel's own.
        stuck_at_seconds: When stuck peers ask; what is due before shows how it is without them.
        stuck_seconds: How long they stay unless the server closes them; 0 stays to the end.
    """

    more_time: ClassVar[str] = "more --interval-seconds"

    kind: Literal["stuck"] = "stuck"
    clients: Annotated[int, Field(ge=1, le=100_000)] = 10
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    interval_seconds: Annotated[float, Field(ge=0.001, le=86_400)] = 1.0
    duration_seconds: Duration = 20.0
    stuck_namespaces: tuple[NamespaceExpectation, ...] = ()
    stuck_peers: Annotated[int, Field(ge=0, le=100_000)] = 1
    stuck_pipelined: Annotated[int, Field(ge=1, le=100_000)] = 64
    stuck_read_rate_bytes_per_second: ReadRate = 0.0
    stuck_receive_buffer_bytes: BufferSize = 0
    stuck_at_seconds: Moment = 2.0
    stuck_seconds: Moment = 0.0

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.stuck_peers and self.stuck_at_seconds >= self.duration_seconds:
            raise ValueError(
                f"--stuck-at-seconds {self.stuck_at_seconds:g} is not before the end of "
                f"--duration-seconds {self.duration_seconds:g}"
            )
        require_few_requests(self, "--clients, --interval-seconds and --duration-seconds")
        return self

    @property
    def connections(self) -> int:
        """Number of connections at once, those of the stuck peers included."""
        return self.clients + self.stuck_peers

    @property
    def stuck_until_seconds(self) -> float | None:
        """When stuck peers leave of their own accord; None: at the end of the run."""
        return self.stuck_at_seconds + self.stuck_seconds if self.stuck_seconds else None


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
