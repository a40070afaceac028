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
    """Healthy clients that list again and again, while peers pipeline listings and read nothing."""

    more_time: ClassVar[str] = "more --interval-seconds"

    kind: Literal["stuck"] = "stuck"
    clients: Annotated[int, Field(ge=1, le=100_000)] = 10
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    # The clients take turns within it.
    interval_seconds: float = Field(
        default=1.0,
        ge=0.001,
        le=86_400,
        description="Each healthy client's listings are due this far apart.",
    )
    duration_seconds: Duration = Field(default=20.0, description="For how long listings are due.")
    stuck_peers: int = Field(
        default=1,
        ge=0,
        le=100_000,
        description="Peers that do not read; 0 runs the healthy clients alone.",
    )
    stuck_pipelined: int = Field(
        default=64,
        ge=1,
        le=100_000,
        description="Listings that each of them asks for, in one go.",
    )
    stuck_read_rate_bytes_per_second: ReadRate = Field(
        default=0.0,
        description="How fast each of them reads, bytes a second; 0 reads nothing at all.",
    )
    stuck_receive_buffer_bytes: BufferSize = Field(
        default=0, description="SO_RCVBUF of their connections, bytes; 0 leaves the kernel's."
    )
    # Peer j asks for number j modulo their count.
    stuck_namespaces: tuple[NamespaceExpectation, ...] = Field(
        default=(),
        description="Namespace that they ask for; repeat to give each peer the next one.",
        json_schema_extra={"default": "those of --namespace or --corpus, in turn"},
    )
    stuck_at_seconds: Moment = Field(
        default=2.0, description="When they ask; what is due before shows how it is without them."
    )
    stuck_seconds: Moment = Field(
        default=0.0, description="How long they stay unless they are closed; 0: to the end."
    )

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
        """The moment at which stuck peers leave of their own accord; None: the end of the run."""
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
