"""The scenario ``produce-beside-silent``: producers beside clients that read nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadgen.scenario import BufferSize, Duration, Moment
from loadgen.stuck_peers.scenario import BesidePeersScenario, PeersWanted


class SilentScenario(BesidePeersScenario):
    """Producers that publish on a schedule, while others read neither receipts nor messages."""

    kind: Literal["produce-beside-silent"] = "produce-beside-silent"
    clients: Annotated[int, Field(ge=1, le=10_000)] = 4
    interval_seconds: float = Field(
        default=0.02,
        ge=0.001,
        le=3_600,
        description="Interval between the messages of a producer.",
    )
    duration_seconds: Duration = Field(
        default=10.0, description="Duration of the schedule of healthy producers."
    )
    message_bytes: int = Field(
        default=1_024, ge=1, le=4_000_000, description="Payload of each message, bytes."
    )
    silent_producers: int = Field(
        default=2,
        ge=0,
        le=10_000,
        description="Number of silent producers: they publish and read no receipt.",
    )
    silent_consumers: int = Field(
        default=2,
        ge=0,
        le=10_000,
        description="Number of silent consumers: they subscribe and read no message.",
    )
    silent_messages: int = Field(
        default=200_000,
        ge=1,
        le=10_000_000,
        description="Messages of each silent producer, sent as fast as the server accepts them.",
    )
    silent_receive_buffer_bytes: BufferSize = Field(
        default=4_096, description="SO_RCVBUF of silent clients, bytes; 0: the kernel's own."
    )
    silent_at_seconds: Moment = Field(
        default=2.0,
        description="Start of the silent clients; until then healthy producers run alone.",
    )
    silent_seconds: Moment = Field(
        default=0.0, description="Time until they disconnect; 0: they stay to the end."
    )

    @property
    def peers(self) -> PeersWanted:
        """The silent clients: the producers first, then the consumers."""
        return PeersWanted(
            count=self.silent_producers + self.silent_consumers,
            at_option="--silent-at-seconds",
            at_seconds=self.silent_at_seconds,
            seconds=self.silent_seconds,
            receive_buffer_bytes=self.silent_receive_buffer_bytes,
            namespaces=self.namespaces,
        )
