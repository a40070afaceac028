"""Arrivals of a group's clients: their start times, which only the seed decides.

They are computed before the run.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import accumulate
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loadgen.plan.fields import Count, Duration, Moment, Part, Rate, RateOrNone


class AtOnce(Part):
    """All clients start at the same moment."""

    kind: Literal["at-once"] = "at-once"

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        return [0.0] * clients


class Constant(Part):
    """Clients start one after the other, at a constant rate."""

    kind: Literal["constant"]
    rate: Rate

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        return [client / self.rate for client in range(clients)]


class Ramp(Part):
    """Clients start at a rate that rises or falls linearly, and then stays at its last value."""

    kind: Literal["ramp"]
    first: Annotated[RateOrNone, Field(alias="from")]
    last: Annotated[Rate, Field(alias="to")]
    over: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        return [self._moment(client) for client in range(clients)]

    def _moment(self, client: int) -> float:
        """Return the start time of the client with a given number, in seconds."""
        first, last, seconds = self.first, self.last, self.over
        during = (first + last) / 2 * seconds
        if client > during:
            return seconds + (client - during) / last
        slope = (last - first) / seconds
        # The stable form of the quadratic formula; valid for a slope of 0 as well.
        root = max(0.0, first * first + 2 * slope * client) ** 0.5
        return 2 * client / (first + root) if client else 0.0


class Step(Part):
    """Clients start at a rate that changes to the next of ``rates`` after each period ``each``."""

    kind: Literal["step"]
    rates: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=1000)]
    each: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        begun = list(accumulate((rate * self.each for rate in self.rates[:-1]), initial=0))
        steps = ((client, bisect_right(begun, client) - 1) for client in range(clients))
        return [
            step * self.each + (client - begun[step]) / self.rates[step] for client, step in steps
        ]


class Poisson(Part):
    """Clients start independently of each other, at a mean rate."""

    kind: Literal["poisson"]
    rate: Rate

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        # Not cryptography: the same seed has to give the same starts everywhere.
        chance = random.Random(seed)
        return list(accumulate(chance.expovariate(self.rate) for _ in range(clients)))


class Burst(Part):
    """Groups of ``count`` clients start together, a group after each period ``every``."""

    kind: Literal["burst"]
    count: Count
    every: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        return [client // self.count * self.every for client in range(clients)]


class Trace(Part):
    """Clients start at the times recorded in a log.

    Attributes:
        at: Moments in ascending order, from 0. A document may name a ``file`` instead, whose lines
            begin with a moment: seconds, or a time in ISO 8601.
    """

    kind: Literal["trace"]
    at: Annotated[tuple[Moment, ...], Field(min_length=1, max_length=1_000_000)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if list(self.at) != sorted(self.at):
            raise ValueError("at of a trace must be in ascending order")
        return self

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds; a log with fewer times is repeated."""
        length = len(self.at)
        span = self.at[-1] + (self.at[-1] / (length - 1) if length > 1 else 0.0)
        return [client // length * span + self.at[client % length] for client in range(clients)]


class Concurrency(Part):
    """A constant number of clients runs at a time: when one ends or fails, the next starts.

    A closed load: a slow server slows the load down, so latencies are service times.
    """

    kind: Literal["concurrency"]
    count: Count

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return a start time of 0 for each of the clients that start immediately.

        Each later client starts when another one has ended, so its start is not known in advance.
        """
        return [0.0] * min(clients, self.count)


Arrivals = Annotated[
    AtOnce | Constant | Ramp | Step | Poisson | Burst | Trace | Concurrency,
    Field(discriminator="kind"),
]
