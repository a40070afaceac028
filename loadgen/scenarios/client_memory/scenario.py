"""The scenario ``client-memory``: one client with a memory limit, on more than fits it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.scenario import BufferSize, Duration, NamespaceExpectation, ReadRate, Scenario

POLICIES = ("bytes", "pulsar")
"""The queues of consumers, one part of the run each: this project's, then upstream's."""
PRODUCING = "producers"
"""The last part: a server that stops reading."""


class ClientMemoryScenario(Scenario):
    """A client with a memory limit consumes a backlog, then sends to a server that is stopped."""

    more_time: ClassVar[str] = "more --drain-seconds"

    kind: Literal["client-memory"] = "client-memory"
    service_url: str = ""
    namespaces: tuple[NamespaceExpectation, ...] = (NamespaceExpectation(name="public/default"),)
    clients: Annotated[int, Field(ge=1, le=1)] = 1
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 60.0
    memory_limit_bytes: int = Field(
        default=8 << 20, ge=1 << 20, le=1 << 40, description="Memory limit of the client, bytes."
    )
    backlog_topics: int = Field(
        default=10, ge=1, le=10_000, description="Number of topics with a backlog."
    )
    consumers_per_topic: int = Field(
        default=10, ge=1, le=10_000, description="Shared consumers on each topic."
    )
    backlog_bytes: int = Field(
        default=100_000_000,
        ge=1,
        le=1 << 50,
        description="Backlog of all topics together, bytes.",
    )
    message_bytes: int = Field(
        default=100 << 10, ge=1, le=4_000_000, description="Payload of each message, bytes."
    )
    work_seconds: float = Field(
        default=0.3, ge=0, le=3_600, description="Time that the application spends on each message."
    )
    drain_seconds: Duration = Field(default=6.0, description="Time for which the consumers run.")
    producers: int = Field(
        default=4,
        ge=0,
        le=1_000,
        description="Producers that send to a server that stops reading; 0: skip this part.",
    )
    producer_messages: int = Field(
        default=16, ge=1, le=100_000, description="Messages of each producer."
    )
    producer_message_bytes: int = Field(
        default=1 << 20, ge=1, le=4_000_000, description="Payload of each of these messages, bytes."
    )
    stopped_seconds: Duration = Field(
        default=2.0, description="Time for which the server reads nothing."
    )

    @model_validator(mode="after")
    def _enough_for_all(self) -> Self:
        if self.messages_per_topic < 1:
            raise ValueError(
                f"--backlog {self.backlog_bytes:,} has no message of --message "
                f"{self.message_bytes:,} for each of --backlog-topics {self.backlog_topics}"
            )
        return self

    @property
    def messages_per_topic(self) -> int:
        """Messages of the backlog of one topic."""
        return self.backlog_bytes // self.message_bytes // self.backlog_topics

    @property
    def consumers(self) -> int:
        """Consumers of all topics."""
        return self.backlog_topics * self.consumers_per_topic

    def topics(self) -> list[str]:
        """Return the topics that have a backlog."""
        return self._topics("client-memory", self.backlog_topics)

    def producer_topics(self) -> list[str]:
        """Return the topics of the producers whose server is stopped."""
        return self._topics("client-memory-producer", self.producers)

    def _topics(self, name: str, number: int) -> list[str]:
        namespaces = [each.name for each in self.namespaces]
        return [
            f"persistent://{namespaces[each % len(namespaces)]}/{name}-{each}"
            for each in range(number)
        ]
