"""The scenario ``stuck``: healthy clients on a schedule, and peers that ask and do not read."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import MOST_REQUESTS
from loadgen.scenario import BufferSize, Duration, Moment, NamespaceExpectation, ReadRate
from loadgen.stuck_peers.scenario import BesidePeersScenario, PeersWanted


class StuckScenario(BesidePeersScenario):
    """Healthy clients that list again and again, while peers pipeline listings and read nothing."""

    kind: Literal["stuck"] = "stuck"
    clients: Annotated[int, Field(ge=1, le=100_000)] = 10
    # The clients take turns within it.
    interval_seconds: float = Field(
        default=1.0,
        ge=0.001,
        le=86_400,
        description="Interval between the requests of a healthy client.",
    )
    duration_seconds: Duration = Field(
        default=20.0, description="Duration of the schedule of healthy clients."
    )
    stuck_peers: int = Field(
        default=1,
        ge=0,
        le=100_000,
        description="Number of non-reading clients (stuck peers); 0: healthy clients alone.",
    )
    stuck_pipelined: int = Field(
        default=64,
        ge=1,
        le=100_000,
        description="Lists that each non-reading client requests at once.",
    )
    stuck_read_rate_bytes_per_second: ReadRate = Field(
        default=0.0,
        description="Bytes a second that each of them reads; 0: nothing.",
    )
    stuck_receive_buffer_bytes: BufferSize = Field(
        default=0, description="SO_RCVBUF of their connections, bytes; 0: the kernel's own."
    )
    # Peer j asks for number j modulo their count.
    stuck_namespaces: tuple[NamespaceExpectation, ...] = Field(
        default=(),
        description="Namespace that they list; may be repeated: each takes the next one.",
        json_schema_extra={"default": "those of --namespace or --corpus, in turn"},
    )
    stuck_at_seconds: Moment = Field(
        default=2.0,
        description="Start of the non-reading clients; until then healthy clients run alone.",
    )
    stuck_seconds: Moment = Field(
        default=0.0, description="Time until they disconnect; 0: they stay to the end."
    )

    @model_validator(mode="after")
    def _few_listings(self) -> Self:
        asked = self.stuck_peers * self.stuck_pipelined
        if asked > MOST_REQUESTS:
            raise ValueError(
                f"--stuck-peers and --stuck-pipelined make {asked:,} listings: one run keeps at "
                f"most {MOST_REQUESTS:,}"
            )
        return self

    @property
    def peers(self) -> PeersWanted:
        """The stuck peers."""
        return PeersWanted(
            count=self.stuck_peers,
            at_option="--stuck-at-seconds",
            at_seconds=self.stuck_at_seconds,
            seconds=self.stuck_seconds,
            receive_buffer_bytes=self.stuck_receive_buffer_bytes,
            namespaces=self.stuck_namespaces or self.namespaces,
        )
