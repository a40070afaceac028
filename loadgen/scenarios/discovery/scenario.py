"""The scenario ``discovery`` and its schedule: groups of clients, each with its family."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from loadgen.clients.schedule import MOST_REQUESTS
from loadgen.scenario import (
    BufferSize,
    Duration,
    Moment,
    Pattern,
    ReadRate,
    Scenario,
    source_address,
)
from loadgen.scenarios.discovery.arrivals import Arrivals, AtOnce, Concurrency
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.scenario import NamespaceExpectation

Family = Literal["once", "polite", "java-watch", "java-poll", "cpp", "go"]
"""``once`` asks a single time and never again; the others are the client library's schedules."""


_TUNNELLING = ("polite", "java-watch", "java-poll")
"""Families that connect to the broker of their pattern, whether they attach to topics or not."""
_SHORTEST_PERIOD_SECONDS = 0.1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reader(_Part):
    """The way in which clients read.

    Attributes:
        rate_bytes_per_second: 0 is unlimited.
        receive_buffer_bytes: SO_RCVBUF; 0 leaves the kernel's.
        never: Nothing is read behind the handshake.
        stall_at_seconds, stall_seconds: Reading stops so long after the client's start, and for
            how long.
    """

    rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    never: bool = False
    stall_at_seconds: Moment = 0.0
    stall_seconds: Moment = 0.0


def _once_or_rarely(period_seconds: float) -> float:
    """Refuse a period in which nobody could connect again.

    Raises:
        ValueError: It is one.
    """
    if 0 < period_seconds < _SHORTEST_PERIOD_SECONDS:
        raise ValueError(f"must be 0 (once) or at least {_SHORTEST_PERIOD_SECONDS:g}")
    return period_seconds


class Disconnects(_Part):
    """Connections that clients lose of their own accord, and make again as their family does.

    Attributes:
        at_seconds: The first time, counted from the agreed start of the run.
        every_seconds: Again and again; 0 is once.
        jitter: Share of a period by which each client is earlier or later, at random.
        share: Share of the group's clients.
    """

    at_seconds: Moment
    every_seconds: Annotated[Moment, AfterValidator(_once_or_rarely)] = 0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.0
    share: Annotated[float, Field(gt=0, le=1)] = 1.0


class Group(_Part):
    """Clients of one kind.

    Attributes:
        name: In reports and thresholds.
        namespaces: Numbers of the scenario's namespaces, first and behind the last; None is all.
            Client *i* of the group has number *i* modulo their count.
        pattern: Local part of the topics pattern; None is all topics of the namespace.
        properties: PIP-452's.
        attach: So many topics each client subscribes to.
        pipelined: Listings that a client of family ``once`` asks for in one go.
        repeat_seconds: A client of family ``once`` asks again each time so much later; 0: never.
        period_seconds, operation_timeout_seconds: Of the family's schedule.
        restart_seconds: A client whose subscription failed starts anew so much later; 0: never.
        arrives_at_seconds: Added to all arrivals of the group.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    family: Family = "once"
    clients: Annotated[int, Field(ge=1, le=1_000_000)]
    namespaces: tuple[int, int] | None = None
    pattern: Pattern | None = None
    properties: dict[str, str] = Field(default_factory=dict)
    attach: Annotated[int, Field(ge=0, le=10_000)] = 0
    pipelined: Annotated[int, Field(ge=1, le=100_000)] = 1
    repeat_seconds: Moment = 0.0
    period_seconds: Duration = 60.0
    operation_timeout_seconds: Duration = 30.0
    restart_seconds: Moment = 0.0
    arrives_at_seconds: Moment = 0.0
    arrivals: Arrivals = AtOnce()
    reader: Reader = Reader()
    disconnects: Disconnects | None = None

    @property
    def connections_each(self) -> int:
        """Connections of a client through a proxy: one to ask, one to the broker by a tunnel."""
        return 2 if self.attach or self.family in _TUNNELLING else 1

    def requests_until(self, end_seconds: float) -> float:
        """Return about how many requests are due until then: of a family, the first of each."""
        lasts = end_seconds - self.arrives_at_seconds
        beats = lasts / self.repeat_seconds if self.repeat_seconds else 1.0
        return self.clients * self.pipelined * max(1.0, beats)

    @property
    def is_countable(self) -> bool:
        """True if its clients ask so often as the schedule says, whatever becomes of it."""
        again = self.attach or self.repeat_seconds or self.restart_seconds
        return self.family == "once" and not again and not isinstance(self.arrivals, Concurrency)


class Phases(_Part):
    """The phases of a run behind connecting, which all finish before the agreed start.

    Attributes:
        warm_up_seconds: What is due meanwhile is not counted in figures.
        measure_seconds: The most that is waited for clients to come back; without a hold a task
            ends earlier when all of its clients are.
        hold_seconds: So long everything goes on behind the time to measure, which is waited for in
            full then: polls, watches, changes.
        drain_seconds: Requests under way may end; nothing new is asked for.
    """

    warm_up_seconds: Moment = 0.0
    measure_seconds: Duration = 120.0
    hold_seconds: Moment = 0.0
    drain_seconds: Moment = 5.0

    @property
    def end_seconds(self) -> float:
        """The moment at which a run ends at the latest, but for draining: nothing starts then."""
        return self.warm_up_seconds + self.measure_seconds + self.hold_seconds


class DiscoveryScenario(Scenario):
    """Groups of clients that discover topics, each as its family does."""

    more_time: ClassVar[str] = "slower arrivals"

    kind: Literal["discovery"] = "discovery"
    service_url: str = Field(
        default="", description="Address of the broker or proxy; without it servers are started."
    )
    groups: Annotated[tuple[Group, ...], Field(min_length=1, max_length=100)] = Field(
        description="Groups of clients; in a scenario file only."
    )
    phases: Phases = Field(
        default=Phases(), description="Phases of the run; in a scenario file only."
    )
    seed: int = Field(default=1, ge=0, description="Seed of all random choices.")
    clients: int = 0  # the sum of all groups
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0

    @model_validator(mode="before")
    @classmethod
    def _sum_clients(cls, data: Any) -> Any:  # noqa: ANN401 - before it was checked
        if not isinstance(data, dict) or not isinstance(data.get("groups"), list | tuple):
            return data
        groups = [Group.model_validate(group) for group in data["groups"]]
        return {**data, "groups": groups, "clients": sum(group.clients for group in groups)}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have the same name")
        for group in self.groups:
            first, end = group.namespaces or (0, len(self.namespaces))
            if not 0 <= first < end <= len(self.namespaces):
                raise ValueError(
                    f"group {group.name} has namespaces {first} to {end} of {len(self.namespaces)}"
                )
            if group.family != "once" and (group.pipelined > 1 or group.repeat_seconds):
                raise ValueError(
                    f"group {group.name}: pipelined and repeat_seconds are for family once"
                )
        asked = sum(group.requests_until(self.phases.end_seconds) for group in self.groups)
        if asked > MOST_REQUESTS:
            raise ValueError(
                f"clients, pipelined and repeat_seconds of its groups make {asked:,.0f} requests: "
                f"one run keeps at most {MOST_REQUESTS:,}"
            )
        return self

    @property
    def connections(self) -> int:
        """Connections of all clients at once, if the server is a proxy: it takes the most."""
        return sum(group.clients * group.connections_each for group in self.groups)

    @property
    def connecting(self) -> int:
        """See Scenario: tunnels come later."""
        return self.clients

    @property
    def planned_requests(self) -> int | None:
        """See Scenario; None as soon as one group polls, tries again or starts in turn."""
        if not all(group.is_countable for group in self.groups):
            return None
        first, end = self.phases.warm_up_seconds, self.phases.end_seconds
        return sum(
            group.pipelined * sum(first <= moment < end for moment in moments)
            for group, moments in self._starts()
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """See Scenario: clients whose moment comes when the run is over."""
        return tuple(
            f"group {group.name}: {late:,} of {group.clients:,} clients never start: the last is "
            f"due at {format_seconds(max(moments))}, and the run ends at "
            f"{format_seconds(self.phases.end_seconds)}; raise phases.measure_seconds, or let "
            "them arrive sooner"
            for group, moments in self._starts()
            if (late := sum(moment >= self.phases.end_seconds for moment in moments))
        )

    def _starts(self) -> Iterator[tuple[Group, list[float]]]:
        for number, group in enumerate(self.groups):
            yield group, _moments(group, self.seed + number)


@dataclass(frozen=True, slots=True)
class FamilyClientPlan:
    """One client's part of the schedule.

    Attributes:
        client: Its number in the run, from 0.
        start_seconds: When it starts, relative to the agreed T0; None: as soon as another client
            of its group has ended (``concurrency``).
        seed: Of all that is left to chance in this client.
        disconnects_seconds: When it drops its connections, up to the longest end of the run.
        source_address: Local address to connect from, or None for the kernel's choice.
    """

    client: int
    group: Group
    namespace: NamespaceExpectation
    start_seconds: float | None
    seed: int
    disconnects_seconds: tuple[float, ...]
    source_address: str | None


def client_plans(
    scenario: DiscoveryScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[FamilyClientPlan]:
    """Yield the clients of one task: every ``tasks``-th, from number ``task``.

    A pure function of scenario and seed: a client's plan is the same over any number of tasks.
    """
    begun = accumulate((group.clients for group in scenario.groups), initial=0)
    for (group, moments), first in zip(scenario._starts(), begun, strict=False):
        namespaces = scenario.namespaces[slice(*(group.namespaces or (None, None)))]
        for index in range((task - first) % tasks, group.clients, tasks):
            client = first + index
            # One more mixing step than seeds that only count up would have.
            seed = random.Random(scenario.seed * 1_000_003 + client).getrandbits(63)
            yield FamilyClientPlan(
                client=client,
                group=group,
                namespace=namespaces[index % len(namespaces)],
                start_seconds=moments[index] if index < len(moments) else None,
                seed=seed,
                disconnects_seconds=_disconnects(group, scenario, seed),
                source_address=source_address(client) if loopback else None,
            )


def _moments(group: Group, seed: int) -> list[float]:
    """Return when the clients of a group start, in an order that the seed decides."""
    moments = [
        group.arrives_at_seconds + each for each in group.arrivals.moments(group.clients, seed)
    ]
    if not isinstance(group.arrivals, Concurrency):
        random.Random(seed).shuffle(moments)
    return moments


def _disconnects(group: Group, scenario: DiscoveryScenario, seed: int) -> tuple[float, ...]:
    wanted = group.disconnects
    chance = random.Random(seed + 1)
    if wanted is None or chance.random() >= wanted.share:
        return ()
    end = scenario.phases.end_seconds
    moments, moment = [], wanted.at_seconds
    while moment < end:
        period = wanted.every_seconds or wanted.at_seconds
        moments.append(max(0.0, moment + (2 * chance.random() - 1) * wanted.jitter * period))
        if not wanted.every_seconds:
            break
        moment += wanted.every_seconds
    return tuple(moments)
