"""The cluster of a scenario: the servers that loadgen starts for a run, and their topics.

The same value describes real processes and servers in virtual time.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Profile = Literal["pulsar", "floodgate"]
MOST_NAMESPACES = 100_000
Namespaces = Annotated[int, Field(ge=1, le=MOST_NAMESPACES)]
Names = Annotated[int, Field(ge=1, le=2_000_000)]


class FurtherTopics(BaseModel):
    """Namespaces of another size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespaces: Namespaces
    per_namespace: Names


class TopicsPlan(BaseModel):
    """The topics of a cluster: namespaces of one size or of several, with made-up names.

    Attributes:
        per_namespace: Names that a listing of one namespace has.
        mean_name_bytes: Mean length of a full name, ``persistent://`` included; under 90 all names
            are as long, and made of digits.
        further: More namespaces, of other sizes; clients ask for those before them first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespaces: Namespaces = 10
    per_namespace: Names = 10_000
    mean_name_bytes: Annotated[int, Field(ge=32, le=512)] = 100
    seed: Annotated[int, Field(ge=0)] = 1
    further: Annotated[tuple[FurtherTopics, ...], Field(max_length=1_000)] = ()

    @model_validator(mode="after")
    def _few(self) -> Self:
        namespaces = self.namespaces + sum(each.namespaces for each in self.further)
        if namespaces > MOST_NAMESPACES:
            raise ValueError(f"{namespaces:,} namespaces in all; at most {MOST_NAMESPACES:,}")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Listed names of each namespace."""
        others = (each.per_namespace for each in self.further for _ in range(each.namespaces))
        return (*(self.per_namespace for _ in range(self.namespaces)), *others)

    @property
    def topics(self) -> int:
        """Number of listed names in all."""
        others = sum(each.namespaces * each.per_namespace for each in self.further)
        return self.namespaces * self.per_namespace + others


class ServerEvent(BaseModel):
    """A server is killed (SIGKILL) while clients are there, and started again at once.

    Attributes:
        at_seconds: Counted from the agreed start of the run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_seconds: Annotated[float, Field(ge=0, le=86_400)]
    restart: Literal["broker", "proxy"]


class ClusterPlan(BaseModel):
    """A broker, a proxy before it unless there is none, and topics.

    Attributes:
        profile: Of both servers.
        broker: Configuration keys of the broker, as in broker.conf.
        proxy: Configuration keys of the proxy; None for no proxy.
        service_times: In virtual time, whose processes the servers stand for: what their work
            takes. Floodgate's, as over sockets, or a real Pulsar's. Elsewhere it says nothing.
        events: What happens to both while the run lasts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Profile = "floodgate"
    broker: dict[str, str] = Field(default_factory=dict)
    proxy: dict[str, str] | None = None
    topics: TopicsPlan = TopicsPlan()
    service_times: Literal["floodgate", "pulsar"] = "floodgate"

    @property
    def processes(self) -> tuple[str, ...]:
        """The names of its servers."""
        return ("broker",) if self.proxy is None else ("broker", "proxy")

    events: Annotated[tuple[ServerEvent, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.proxy is None and any(each.restart == "proxy" for each in self.events):
            raise ValueError("an event restarts the proxy, and there is none: add proxy: {}")
        return self
