"""Arrivals: when each client of a group starts, decided before the run by the seed alone."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loadgen.documents.fields import Count, Duration, Moment, Part, Rate


class AtOnce(Part):
    """All clients start at the same moment."""

    kind: Literal["at-once"] = "at-once"

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        del seed
        return [0.0] * clients


class Constant(Part):
    """Clients start one after the other, as many a second as stated."""

    kind: Literal["constant"]
    per_second: Rate

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        del seed
        return [client / self.per_second for client in range(clients)]


class Ramp(Part):
    """The rate of starts grows or falls evenly; at the end of the time the last rate stays."""

    kind: Literal["ramp"]
    from_per_second: Annotated[float, Field(ge=0, le=1_000_000)]
    to_per_second: Rate
    seconds: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        del seed
        return [self._moment(client) for client in range(clients)]

    def _moment(self, client: int) -> float:
        """Return when so many have started before: the root of a parabola, then a line."""
        first, last, seconds = self.from_per_second, self.to_per_second, self.seconds
        during = (first + last) / 2 * seconds
        if client > during:
            return seconds + (client - during) / last
        slope = (last - first) / seconds
        # The stable form of the quadratic formula; it holds for a slope of 0 as well.
        root = max(0.0, first * first + 2 * slope * client) ** 0.5
        return 2 * client / (first + root) if client else 0.0


class Step(Part):
    """The rate of starts changes at stated moments, to the next of the rates."""

    kind: Literal["step"]
    per_second: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=1000)]
    seconds_each: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        del seed
        begun = list(accumulate((rate * self.seconds_each for rate in self.per_second), initial=0))
        moments, step = [], 0
        for client in range(clients):
            while step < len(self.per_second) - 1 and client >= begun[step + 1]:
                step += 1
            into = (client - begun[step]) / self.per_second[step]
            moments.append(step * self.seconds_each + into)
        return moments


class Poisson(Part):
    """Clients start independently of each other, so many a second in the mean."""

    kind: Literal["poisson"]
    per_second: Rate

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        # Not cryptography: the same seed has to give the same starts everywhere.
        chance = random.Random(seed)
        return list(accumulate(chance.expovariate(self.per_second) for _ in range(clients)))


class Burst(Part):
    """So many clients start at the same moment, again and again."""

    kind: Literal["burst"]
    clients_each: Count
    every_seconds: Duration

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts, in seconds, in ascending order."""
        del seed
        return [client // self.clients_each * self.every_seconds for client in range(clients)]


class Trace(Part):
    """Clients start when those of a recorded log did.

    Attributes:
        at_seconds: Moments in ascending order, from 0; a document may name a ``file`` instead,
            with a moment (seconds, or a time in ISO 8601) at the beginning of each line.
    """

    kind: Literal["trace"]
    at_seconds: Annotated[tuple[Moment, ...], Field(min_length=1, max_length=1_000_000)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if list(self.at_seconds) != sorted(self.at_seconds):
            raise ValueError("at_seconds of a trace must be in ascending order")
        return self

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return when each client starts; a log that is too short is repeated behind its end."""
        del seed
        length = len(self.at_seconds)
        span = self.at_seconds[-1] + (self.at_seconds[-1] / (length - 1) if length > 1 else 0.0)
        return [
            client // length * span + self.at_seconds[client % length] for client in range(clients)
        ]


class Concurrency(Part):
    """So many clients are there at any time: as one is back, or has failed, the next starts.

    A closed load: a slow server makes it ask less, so its latencies are service times.
    """

    kind: Literal["concurrency"]
    clients_at_once: Count

    def moments(self, clients: int, seed: int) -> list[float]:
        """Return 0 for those that start at once; the others start when a place is free."""
        del seed
        return [0.0] * min(clients, self.clients_at_once)


Arrivals = Annotated[
    AtOnce | Constant | Ramp | Step | Poisson | Burst | Trace | Concurrency,
    Field(discriminator="kind"),
]
