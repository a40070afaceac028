"""The scenario ``produce-beside-silent``: producers beside clients that read nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import require_few_requests
from loadgen.scenario import (
    BufferSize,
    ClientPlan,
    Duration,
    Moment,
    ReadRate,
    Scenario,
    source_address,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class SilentScenario(Scenario):
    """Producers that publish on a schedule, while others read neither receipts nor messages."""

    more_time: ClassVar[str] = "more --interval-seconds"

    kind: Literal["produce-beside-silent"] = "produce-beside-silent"
    clients: Annotated[int, Field(ge=1, le=10_000)] = 4
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    interval_seconds: float = Field(
        default=0.02,
        ge=0.001,
        le=3_600,
        description="Each producer's messages are due this far apart.",
    )
    duration_seconds: Duration = Field(default=10.0, description="For how long messages are due.")
    message_bytes: int = Field(
        default=1_024, ge=1, le=4_000_000, description="Payload of each message, bytes."
    )
    silent_producers: int = Field(
        default=2, ge=0, le=10_000, description="Clients that publish and never read a receipt."
    )
    silent_consumers: int = Field(
        default=2,
        ge=0,
        le=10_000,
        description="Clients that subscribe to the topics of the producers and read no message.",
    )
    silent_messages: int = Field(
        default=200_000,
        ge=1,
        le=10_000_000,
        description="Messages of each silent producer, as fast as the server takes them.",
    )
    silent_receive_buffer_bytes: BufferSize = Field(
        default=4_096, description="SO_RCVBUF of silent clients, bytes; 0 leaves the kernel's."
    )
    silent_at_seconds: Moment = Field(
        default=2.0, description="When they begin; what is due before shows how it is without them."
    )
    silent_seconds: Moment = Field(
        default=0.0, description="How long they stay unless they are closed; 0: to the end."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.silent_peers and self.silent_at_seconds >= self.duration_seconds:
            raise ValueError(
                f"--silent-at-seconds {self.silent_at_seconds:g} is not before the end of "
                f"--duration-seconds {self.duration_seconds:g}"
            )
        require_few_requests(self, "--clients, --interval-seconds and --duration-seconds")
        return self

    @property
    def silent_peers(self) -> int:
        """All clients that do not read."""
        return self.silent_producers + self.silent_consumers

    @property
    def connections(self) -> int:
        """Number of connections at once, those of the silent clients included."""
        return self.clients + self.silent_peers

    @property
    def stuck_pipelined(self) -> int:
        """As many messages each silent producer sends; the figures of stuck peers ask for it."""
        return self.silent_messages

    @property
    def silent_until_seconds(self) -> float | None:
        """The moment at which silent clients leave of their own accord; None: the end."""
        return self.silent_at_seconds + self.silent_seconds if self.silent_seconds else None


def silent_plans(
    scenario: SilentScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the silent clients of one task: the producers first, then the consumers."""
    for peer in range(task, scenario.silent_peers, tasks):
        yield ClientPlan(
            client=peer,
            namespace=scenario.namespaces[peer % len(scenario.namespaces)],
            intended_start_seconds=scenario.silent_at_seconds,
            source_address=source_address(scenario.clients + peer) if loopback else None,
        )
