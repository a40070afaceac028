"""The load that advice is for: namespaces, clients by family, and how fast they read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from limiter.memory.size_estimate import BYTES_PER_NAME, FIRST_ESTIMATE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.scenarios.discovery.scenario import Family

LONGEST_ONE_BYTE_LENGTH = 127
ANSWER_HEAD_BYTES = 40
"""Of an answer beside its names: ids, hash and flags."""
NEVER = -1.0
"""The speed of a reader that reads nothing."""
WATCHING = frozenset({"polite", "java-watch"})
"""Families whose clients ask for a watch behind their first list."""

MOST_SIZES = 16
"""So many sizes are kept as they are; of more, so many groups have two sizes each at most."""


@dataclass(frozen=True)
class NamespaceShape:
    """A namespace: its number of listed names, and the bytes of all of them."""

    name: str
    topics: int
    name_bytes: int

    @property
    def charged_bytes(self) -> int:
        """Heap that a listing is charged with, as shipped: the names and 32 bytes for each."""
        return self.name_bytes + BYTES_PER_NAME * self.topics

    @property
    def answer_bytes(self) -> int:
        """Size of the answer, which direct memory is charged with."""
        long_names = self.topics and self.name_bytes / self.topics > LONGEST_ONE_BYTE_LENGTH
        return self.name_bytes + self.topics * (3 if long_names else 2) + ANSWER_HEAD_BYTES


@dataclass(frozen=True)
class Readers:
    """The speed at which clients read, in bytes a second; 0 is as fast as it comes.

    Attributes:
        slow_share: Share of clients that read at ``slow_rate`` instead, which may be ``NEVER``.
        network_bytes: Bytes of an answer that lie in the kernels and the network between: what
            has left the server has given its memory back.
    """

    rate: float = 0.0
    slow_share: float = 0.0
    slow_rate: float = NEVER
    network_bytes: int = 131_072

    def seconds(self, answer_bytes: int, *, slow: bool = False) -> float:
        """Return how long a client reads an answer."""
        rate = self.slow_rate if slow else self.rate
        if rate == NEVER:
            return math.inf
        return answer_bytes / rate if rate else 0.0

    def held_seconds(self, answer_bytes: int, *, slow: bool = False) -> float:
        """Return how long an answer holds direct memory: until its last byte has left."""
        return self.seconds(max(0, answer_bytes - self.network_bytes), slow=slow)


@dataclass(frozen=True)
class Workload:
    """A load.

    Attributes:
        namespaces: What is listed; clients of a family ask for one after the other in turn, the
            largest first.
        families: Clients of each family.
        operation_timeout_seconds: How long a client waits for an answer before it gives up.
        period_seconds: Of polling; ``polite`` asks for its watch by it, too.
        spread_seconds: The time over which all start; 0: at once.
        max_message_bytes: ``maxMessageSize``.
        seed: Of all that is left to chance.
    """

    namespaces: tuple[NamespaceShape, ...]
    families: Mapping[Family, int]
    readers: Readers = Readers()
    operation_timeout_seconds: float = 30.0
    period_seconds: float = 60.0
    spread_seconds: float = 0.0
    max_message_bytes: int = 5 * 1024 * 1024
    seed: int = 1

    @property
    def clients(self) -> int:
        """Clients in all."""
        return sum(self.families.values())

    @property
    def slow_clients(self) -> int:
        """Clients that read slowly."""
        return sum(self.slow(count) for count in self.families.values())

    def slow(self, clients: int) -> int:
        """Return how many of a family's clients read slowly."""
        return round(clients * self.readers.slow_share)

    @property
    def largest(self) -> NamespaceShape:
        """The namespace with the largest answer: no limit may be below it."""
        return self.listed[0]

    @cached_property
    def listed(self) -> tuple[NamespaceShape, ...]:
        """Namespaces that anybody lists, the largest first: each family begins with it.

        So do its slow clients, among themselves.
        """
        by_size = sorted(self.namespaces, key=lambda each: (-each.charged_bytes, each.name))
        counts = self.families.values()
        most = max(max(count - self.slow(count), self.slow(count)) for count in counts)
        return tuple(by_size[:most])

    @property
    def first_estimates_bytes(self) -> int:
        """Heap that first requests of all namespaces hold together, as shipped.

        Each reserves so little as long as nobody knows the size of its list, and waits for the rest
        behind all who came meanwhile: with less than this they wait for each other.
        """
        return sum(min(FIRST_ESTIMATE_BYTES, each.charged_bytes) for each in self.listed)

    @cached_property
    def mean(self) -> NamespaceShape:
        """A namespace of the mean size of those that are listed."""
        count = len(self.listed)
        topics = sum(each.topics for each in self.listed)
        name_bytes = sum(each.name_bytes for each in self.listed)
        return NamespaceShape("mean", round(topics / count), round(name_bytes / count))

    @property
    def answers(self) -> int:
        """Lists that clients are sent until all are back: a watch's answer is one."""
        return sum(
            count * (2 if family in WATCHING else 1) for family, count in self.families.items()
        )


def size_classes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return how many namespaces have how many names, the largest first.

    The number of namespaces, that of all names and the largest namespaces are kept in any case.
    """
    ordered = sorted(sizes, reverse=True)
    if len(set(ordered)) > MOST_SIZES:
        largest = ordered.count(ordered[0])
        ordered = ordered[:largest] + sorted(_evened(ordered[largest:]), reverse=True)
    return [(count, size) for size, count in Counter(ordered).items()]


def _evened(ordered: Sequence[int]) -> Iterator[int]:
    """Yield the sizes of groups that have about as many names each, made alike within a group."""
    groups: list[list[int]] = [[] for _ in range(MOST_SIZES)]
    total, before = sum(ordered), 0
    for size in ordered:
        groups[before * MOST_SIZES // total].append(size)
        before += size
    for group in filter(None, groups):
        each, more = divmod(sum(group), len(group))
        yield from (each + (index < more) for index in range(len(group)))
