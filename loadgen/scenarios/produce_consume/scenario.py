"""The scenario ``produce-consume``: an open schedule of messages through topics with consumers."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import MOST_REQUESTS, scheduled_requests
from loadgen.scenario import BufferSize, Duration, ReadRate, Scenario
from loadgen.scenarios.produce_consume.frames import HEADER_BYTES

SubscriptionType = Literal["exclusive", "shared", "key-shared"]


class ProduceConsumeScenario(Scenario):
    """Producers with a topic each, and consumers of every subscription of it.

    Each message is an entry of its own, acknowledged singly: no batches.
    """

    more_time: ClassVar[str] = "fewer --messages-per-second"
    tunnels: ClassVar[bool] = True

    kind: Literal["produce-consume"] = "produce-consume"
    service_url: str = Field(
        default="", description="Address of the broker; without it a broker is started."
    )
    clients: Annotated[int, Field(ge=1, le=10_000)] = 10
    # Of the consumers; producers read no more than receipts.
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    messages_per_second: float = Field(
        default=20.0, gt=0, le=100_000, description="Messages a second of each producer."
    )
    produce_seconds: Duration = Field(default=10.0, description="Duration of the schedule.")
    message_bytes: int = Field(
        default=1_024, ge=HEADER_BYTES, le=4_000_000, description="Payload of each message, bytes."
    )
    message_keys: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Number of message keys, used in turn; 0: no keys.",
    )
    subscriptions: int = Field(
        default=1,
        ge=0,
        le=100,
        description="Subscriptions of each topic; each receives every message.",
    )
    consumers: int = Field(default=1, ge=1, le=1_000, description="Consumers on each subscription.")
    subscription_type: SubscriptionType = Field(
        default="exclusive",
        description="Type of subscription. Order is checked by topic (exclusive), not at all "
        "(shared), or by key (key-shared).",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.subscription_type == "exclusive" and self.consumers > 1:
            raise ValueError(
                f"--consumers {self.consumers} of an exclusive subscription: choose "
                "--subscription-type shared or key-shared"
            )
        if self.subscription_type == "key-shared" and not self.message_keys:
            raise ValueError("--subscription-type key-shared needs --message-keys")
        sent = self.clients * self.messages_per_second * self.produce_seconds
        if sent * (1 + self.subscriptions) > MOST_REQUESTS:
            raise ValueError(
                "--clients, --messages-per-second, --produce-seconds and --subscriptions make "
                f"{sent * (1 + self.subscriptions):,.0f} messages sent and delivered: one run "
                f"keeps at most {MOST_REQUESTS:,}"
            )
        return self

    @property
    def interval_seconds(self) -> float:
        """Each producer's messages are due this far apart."""
        return 1 / self.messages_per_second

    @property
    def duration_seconds(self) -> float:
        """Messages are due from 0 until then."""
        return self.produce_seconds

    @property
    def planned_requests(self) -> int:
        """Number of messages that the schedule holds."""
        return scheduled_requests(self)

    @property
    def connections(self) -> int:
        """Number of connections at once: a producer's or a consumer's each."""
        return self.clients * (1 + self.subscriptions * self.consumers)
