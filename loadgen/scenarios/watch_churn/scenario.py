"""The scenario ``watch-churn`` and its schedule: which topic comes and goes when."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import MOST_REQUESTS
from loadgen.scenario import BufferSize, ClientPlan, Duration, ReadRate, Scenario, source_address


class WatchChurnScenario(Scenario):
    """Clients that watch namespaces in which topics are created and deleted by admin REST.

    Client *i* watches namespace number *i* modulo their count. A task has whole namespaces:
    their watchers, and who creates and deletes there.
    """

    more_time: ClassVar[str] = "fewer --changes-per-second"
    tunnels: ClassVar[bool] = True

    kind: Literal["watch-churn"] = "watch-churn"
    service_url: str = Field(
        default="", description="Address of the broker; without it a broker is started."
    )
    clients: Annotated[int, Field(ge=1, le=100_000)] = 20
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    admin_url: str = Field(
        default="",
        description="Web address of the broker in which topics are created and deleted: "
        "http://host:port.",
        json_schema_extra={"default": "--broker-admin-url"},
    )
    changes_per_second: float = Field(
        default=10.0,
        gt=0,
        le=10_000,
        description="Topics created or deleted each second in each namespace.",
    )
    topic_seconds: Duration = Field(default=2.0, description="Lifetime of a created topic.")
    churn_seconds: Duration = Field(
        default=10.0, description="Time for which topics are created and deleted; none is left."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.topic_seconds >= self.churn_seconds:
            raise ValueError(
                f"--topic-seconds {self.topic_seconds:g} is not less than --churn-seconds "
                f"{self.churn_seconds:g}"
            )
        updates = self.clients * self.changes_per_second * self.churn_seconds
        if updates > MOST_REQUESTS:
            raise ValueError(
                f"--clients, --changes-per-second and --churn-seconds make {updates:,.0f} updates: "
                f"one run keeps at most {MOST_REQUESTS:,}"
            )
        return self


@dataclass(frozen=True, slots=True)
class Change:
    """One topic's coming or going, and when it is due, in seconds after T0."""

    due_seconds: float
    topic: str
    created: bool

    @property
    def words(self) -> str:
        """The change as a part of a sentence."""
        return f"{self.topic} was {'created' if self.created else 'deleted'}"


def changes_of(scenario: WatchChurnScenario, namespace: int) -> list[Change]:
    """Return what happens in a namespace, by its number, in order of time.

    Creations are evenly apart, deletions lie halfway between them, and namespaces take turns.
    """
    step = 2 / scenario.changes_per_second
    first = namespace / len(scenario.namespaces) * step / 2
    left = scenario.churn_seconds - scenario.topic_seconds
    name = scenario.namespaces[namespace].name
    changes = []
    for number in range(max(1, math.floor(round(left / step, 9)))):
        topic = f"persistent://{name}/churn-{number:06d}"
        due = first + number * step
        changes.append(Change(due, topic, created=True))
        stays = math.ceil(round(scenario.topic_seconds / step - 0.5, 9)) + 0.5
        changes.append(Change(due + stays * step, topic, created=False))
    return sorted(changes, key=lambda change: change.due_seconds)


def watcher_plans(
    scenario: WatchChurnScenario, namespace: int, *, loopback: bool = False
) -> list[ClientPlan]:
    """Return the watchers of a namespace, by its number."""
    return [
        ClientPlan(
            client=client,
            namespace=scenario.namespaces[namespace],
            intended_start_seconds=0.0,
            source_address=source_address(client) if loopback else None,
        )
        for client in range(namespace, scenario.clients, len(scenario.namespaces))
    ]
