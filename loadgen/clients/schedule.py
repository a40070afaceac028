"""The open schedule of clients that ask again and again, each in its turn within an interval.

A request is due at its moment, whatever became of the one before, and its latency counts from
that moment. So a server that keeps clients waiting cannot make them ask less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from loadgen.scenario import ClientPlan, source_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.scenario import NamespaceExpectation

# One row of 200 bytes each, held until the run is over.
MOST_REQUESTS = 2_000_000
# So much too early is rounding, not an early timer.
ON_TIME_SECONDS = 1e-6


class Scheduled(Protocol):
    """The part of a scenario that its schedule follows from.

    Each client's requests are due an interval apart, all of them from 0 until the duration. Client
    *i* asks for namespace number *i* modulo their count.
    """

    @property
    def namespaces(self) -> tuple[NamespaceExpectation, ...]: ...  # noqa: D102
    @property
    def clients(self) -> int: ...  # noqa: D102
    @property
    def interval_seconds(self) -> float: ...  # noqa: D102
    @property
    def duration_seconds(self) -> float: ...  # noqa: D102


def require_few_requests(scenario: Scheduled, options: str) -> None:
    """Refuse a schedule with more requests than one run keeps; ``options`` decide their number.

    Raises:
        ValueError: It has too many.
    """
    requests = scenario.clients * (scenario.duration_seconds / scenario.interval_seconds)
    if requests > MOST_REQUESTS:
        raise ValueError(
            f"{options} make {requests:,.0f} requests: one run keeps at most {MOST_REQUESTS:,}"
        )


def scheduled_requests(scenario: Scheduled) -> int:
    """Return how many requests fall due in all."""
    return sum(_requests(scenario, client) for client in range(scenario.clients))


def scheduled_plans(
    scenario: Scheduled, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the clients of one task: every ``tasks``-th, from number ``task``.

    A client's intended start is when its first request is due.
    """
    step = scenario.interval_seconds / scenario.clients
    for client in range(task, scenario.clients, tasks):
        yield ClientPlan(
            client=client,
            namespace=scenario.namespaces[client % len(scenario.namespaces)],
            intended_start_seconds=client * step,
            source_address=source_address(client) if loopback else None,
        )


def due_moments(scenario: Scheduled, client: int) -> Iterator[float]:
    """Yield when a client's requests are due, in seconds after T0."""
    first = client * (scenario.interval_seconds / scenario.clients)
    for number in range(_requests(scenario, client)):
        yield first + number * scenario.interval_seconds


def _requests(scenario: Scheduled, client: int) -> int:
    left = scenario.duration_seconds - client * (scenario.interval_seconds / scenario.clients)
    return max(0, math.ceil(round(left / scenario.interval_seconds, 9)))
