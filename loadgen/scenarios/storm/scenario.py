"""The scenario ``storm`` and its schedule: each client starts at its own moment."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

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


class StormScenario(Scenario):
    """A restart storm: many clients, one listing each, no retries."""

    more_time: ClassVar[str] = "more --spread-seconds"

    kind: Literal["storm"] = "storm"
    clients: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    read_rate_bytes_per_second: ReadRate = 100_000.0
    receive_buffer_bytes: BufferSize = 65_536
    timeout_seconds: Duration = 120.0
    requests_per_client: int = Field(
        default=1, ge=1, le=1_000_000, description="Requests of each client, one after the other."
    )
    spread_seconds: Moment = Field(
        default=0.0, description="Time over which client starts are spread evenly; 0: all at once."
    )
    seed: int = Field(default=1, description="Seed of the order in which clients start.")

    @property
    def planned_requests(self) -> int:
        """Number of requests that the schedule holds."""
        return self.clients * self.requests_per_client


def client_plans(
    scenario: StormScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the clients of one task: every ``tasks``-th client, from number ``task``.

    On the loopback (127.0.0.0/8) more source addresses than one are at hand.
    """
    places = list(range(scenario.clients))
    # Not cryptography: the same seed has to give the same storm everywhere.
    random.Random(scenario.seed).shuffle(places)
    step = scenario.spread_seconds / scenario.clients
    for client in range(task, scenario.clients, tasks):
        yield ClientPlan(
            client=client,
            namespace=scenario.namespaces[client % len(scenario.namespaces)],
            intended_start_seconds=places[client] * step,
            source_address=source_address(client) if loopback else None,
        )
