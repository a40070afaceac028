"""Clients, phases and start times of a run, computed from the scenario and its seed alone.

Client *i* has the same group, namespace, start and random numbers in any place and with any number
of tasks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count, takewhile
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from loadgen.plan.arrivals import Concurrency
from loadgen.plan.fields import Duration, Moment, NamespaceName, Part

if TYPE_CHECKING:
    from loadgen.plan.group import Group

MOST_REQUESTS = 2_000_000
"""Most requests of a task: a row of 200 bytes each, held until the run is over."""
CLIENTS_PER_SOURCE_ADDRESS = 20_000
"""About 28,000 ports are free for a pair of source and destination address (Linux's default
range), some already taken: every further 20,000 clients get another source address.
"""
_FIRST_EXTRA_SOURCE = IPv4Address("127.0.0.2")
_MASK = 2**64 - 1


class Phases(Part):
    """The phases of a run, which begin once all clients are connected.

    Attributes:
        warm_up: Requests due in this phase do not count in figures.
        measure: The measured time. Without a hold the run ends earlier if all clients have ended of
            their own accord, or are back.
        hold: Further measured time, whether or not all clients are back.
        drain: Time in which requests under way may end; no new request begins.
    """

    warm_up: Moment = 0.0
    measure: Duration = 120.0
    hold: Moment = 0.0
    drain: Moment = 5.0

    @property
    def end(self) -> float:
        """The time from which on no request begins, in seconds since the run's start."""
        return self.warm_up + self.measure + self.hold


class Namespace(BaseModel):
    """A namespace, with the size and hash of a correct listing where known.

    Attributes:
        name: ``tenant/namespace``.
        topics: Number of topic names in a listing; None if unknown.
        hash: Pulsar's topics hash of these names; None if unknown.
        changes: Whether topics are created or deleted during the run: then two lists may
            differ and both be right.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: NamespaceName
    topics: Annotated[int, Field(ge=0)] | None = None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{8}$")] | None = None
    changes: bool = False


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """The plan of one client of a run, such as its group, namespace and start.

    Attributes:
        number: Number of the client in the run, from 0.
        index: Number of the client in its group, from 0.
        start: Seconds since the agreed start. None means that the client starts as soon as another
            client of the group has ended (``concurrency``).
        seed: Seed of the client's random choices.
        drops: Moments when the client loses its connections, up to the end of the run.
        source_address: Local address to connect from; None for the kernel's choice.
    """

    number: int
    index: int
    group: Group
    namespace: Namespace
    start: float | None
    seed: int = 0
    drops: tuple[float, ...] = ()
    source_address: str | None = None


def start_moments(group: Group, seed: int) -> list[float]:
    """Return the start times of a group's clients, in seconds, shuffled by the seed.

    Clients that have no start time wait until another client has ended.
    """
    moments = [group.after + each for each in group.arrive.moments(group.count, seed)]
    if not isinstance(group.arrive, Concurrency):
        random.Random(seed).shuffle(moments)
    return moments


def drop_moments(group: Group, end: float, seed: int) -> tuple[float, ...]:
    """Return the times at which a client drops its connections, up to the run's end.

    They are in seconds since the run's start.
    """
    wanted = group.drop
    chance = random.Random(seed + 1)
    if wanted is None or chance.random() >= wanted.share:
        return ()
    period = wanted.every or wanted.at
    planned = count(wanted.at, wanted.every) if wanted.every else (wanted.at,)
    return tuple(
        max(0.0, moment + (2 * chance.random() - 1) * wanted.jitter * period)
        for moment in takewhile(lambda moment: moment < end, planned)
    )


def source_address(client: int) -> str | None:
    """Return the loopback address from which a client connects; None for the kernel's choice."""
    group = client // CLIENTS_PER_SOURCE_ADDRESS
    return str(_FIRST_EXTRA_SOURCE + (group - 1)) if group else None


class Chance:
    """A generator of random numbers from 0 to 1, with a state of only 16 bytes.

    Python's own generator has a state of 2,500 bytes, too many for each of many clients.

    Source: SplitMix64, in the public domain.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def __call__(self) -> float:
        """Return the next random number."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) * 2**-53
