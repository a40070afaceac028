"""The plan of generated topics: their number, their shape and their namespaces.

The ids 0 to ``topics - 1`` are distributed to the namespaces in the order of their names; each
namespace gets a contiguous range.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from loadgen.topics.distributions import (
    APPLICATIONS,
    EVEN,
    EVEN_SPREAD,
    FEW,
    FIXED,
    LENGTHS,
    LONGEST_NAME_BYTES,
    ONE_TOPIC,
    REGIONS,
    TENANTS,
    checked_partitions,
    counter_hash,
    dealt,
    zipf_weights,
)
from proto.names import MAX_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_TOPICS_PER_NAMESPACE = 10_000_000
MOST_NAME_BYTES = 2**31 - 1
"""Most names of a namespace, by bytes: a sorted Arrow string column has 31-bit offsets."""
MOST_PROPERTIES = 32
WORDS_NAME_BYTES, SHORTEST_NAME_BYTES, UNIQUE_DIGITS = 90, 32, 8
_RANGES = {
    "mean_name_bytes": (SHORTEST_NAME_BYTES, LONGEST_NAME_BYTES),
    "plain_share": (0, 1),
    "non_persistent_share": (0, 1),
    "tenant_skew": (0, 3),
    "namespace_skew": (0, 3),
}
USUAL, NONE = "usual", "none"
# The random streams of the namespaces' names, and of the order of their sizes.
_STREAM, _SIZE_STREAM = 1, 12


@dataclass(frozen=True)
class TopicShape:
    """The proportions of generated topics: shares, name lengths and named distributions.

    Attributes:
        mean_name_bytes: Mean length of a full name, ``persistent://`` and partition included.
        plain_share: Share of the listed names whose topics have no partitions.
        tenant_skew: Exponent of the Zipf law by which tenants hold namespaces; 0 is even.
        namespace_skew: Exponent of the Zipf law by which namespaces hold topics; 0 is even.
        tenants: Number of tenants; None is the square root of the number of namespaces.
        name_lengths: Lengths of names: ``even`` (12 bytes around the mean), ``fixed`` or
            ``long-tail``.
        partitions: Partitions of a topic; see :data:`loadgen.topics.distributions.PARTITIONS`.
        properties: Properties of a topic: ``usual`` (team, environment and mostly a third),
            ``none``, or a number of them.
        non_persistent_share: Share of the topics that are non-persistent.
    """

    mean_name_bytes: int = 100
    plain_share: float = 0.15
    tenant_skew: float = 1.0
    namespace_skew: float = 0.0
    tenants: int | None = None
    name_lengths: str = EVEN
    partitions: str = FEW
    properties: str = USUAL
    non_persistent_share: float = 0.0

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                said = f"The {name.replace('_', ' ')} is {value}"
                raise ValueError(f"{said}; it must be from {least} to {most}.")
        if self.short and (self.plain_share < 1 or self.name_lengths != FIXED):
            said = f"The mean name length is {self.mean_name_bytes} bytes; below {WORDS_NAME_BYTES}"
            raise ValueError(f"{said} the plain share must be 1 and the name lengths {FIXED}.")
        if self.name_lengths not in LENGTHS:
            said = f"The name lengths are {self.name_lengths[:40]!r}"
            raise ValueError(f"{said}; they must be one of {', '.join(LENGTHS)}.")
        if checked_partitions(self.partitions) == ONE_TOPIC and self.plain_share:
            said = f"With partitions {ONE_TOPIC} every name has a partition"
            raise ValueError(f"{said}; the plain share must be 0.")
        if self.properties not in (USUAL, NONE, *map(str, range(1, MOST_PROPERTIES + 1))):
            known = f"{USUAL}, {NONE} or a number from 1 to {MOST_PROPERTIES}"
            raise ValueError(f"The properties are {self.properties[:40]!r}; they must be {known}.")

    @property
    def short(self) -> bool:
        """True if topic names are too short to contain words and partition numbers."""
        return self.mean_name_bytes < WORDS_NAME_BYTES


@dataclass(frozen=True)
class TopicPlan:
    """The plan of generated topics: the numbers of names and namespaces, seed and shape.

    Attributes:
        sizes: Number of topic names in each namespace; empty if the shape decides it.
        names: Names of the namespaces, in the order of ``sizes``; if empty, they are generated.
    """

    topics: int
    namespaces: int
    seed: int
    shape: TopicShape = field(default_factory=TopicShape)
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.namespaces < 1:
            raise ValueError(f"{self.namespaces} namespaces were asked for; at least 1 is needed.")
        if self.topics < self.namespaces:
            said = f"{self.topics} topics cannot fill {self.namespaces} namespaces"
            raise ValueError(f"{said}; ask for at least one topic a namespace.")
        one_topic = self.shape.partitions == ONE_TOPIC
        longest = self.shape.mean_name_bytes + EVEN_SPREAD
        most = min(MOST_TOPICS_PER_NAMESPACE, MOST_NAME_BYTES // longest)
        if one_topic:
            most = MAX_PARTITIONS
        if max(_topics_by_rank(self)) > most:
            said = f"{self.topics} topics in {self.namespaces} namespaces are more than {most}"
            cure = f"ask for more namespaces{' or less skew' * self.skewed}"
            raise ValueError(f"{said} in the largest; {cure}.")
        if not 1 <= (self.shape.tenants or 1) <= self.namespaces:
            known = f"it must be from 1 to the {self.namespaces} namespaces"
            raise ValueError(f"{self.shape.tenants} tenants were asked for; {known}.")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"The seed is {self.seed}; it must be from 0 to 2^63 - 1.")

    @property
    def skewed(self) -> bool:
        """True if the namespaces have different numbers of topics."""
        return self.shape.namespace_skew > 0 or bool(self.sizes)


@dataclass(frozen=True)
class NamespacePlan:
    """A namespace to generate: its name, and the range of ids of its topics."""

    tenant: str
    name: str
    first_id: int
    topics: int


@lru_cache(maxsize=4)
def plan_namespaces(plan: TopicPlan) -> tuple[NamespacePlan, ...]:
    """Return the namespaces of a plan with their ranges of topic ids; made-up names are sorted.

    Without skew all namespaces have the same number of topics, and the first ones get one of the
    remaining topics each. With skew the sizes are distributed at random.
    """
    names = plan.names or ["/".join(each) for each in sorted(_namespace_names(plan))]
    sizes = _topics_by_rank(plan)
    if plan.skewed and not plan.sizes:
        indexes = np.arange(len(sizes), dtype=np.uint64)
        ranks = np.argsort(counter_hash(plan.seed, _SIZE_STREAM, indexes), kind="stable")
        sizes = [sizes[rank] for rank in ranks]
    planned = []
    first_id = 0
    for name, topics in zip(names, sizes, strict=True):
        planned.append(NamespacePlan(name.partition("/")[0], name, first_id, topics))
        first_id += topics
    return tuple(planned)


def plan_parts(plan: TopicPlan, parts: int) -> list[tuple[NamespacePlan, ...]]:
    """Distribute the namespaces of a plan over at most ``parts`` files, of which none is empty.

    If namespaces have different sizes, the files hold about the same number of topics.
    """
    planned, count = plan_namespaces(plan), plan.namespaces
    parts = min(parts, count)
    starts = [part * count // parts for part in range(parts)]
    if plan.skewed:
        part_of = [one.first_id * parts // plan.topics for one in planned]
        starts = [0, *(i for i in range(1, count) if part_of[i] != part_of[i - 1])]
    return [planned[slice(*each)] for each in pairwise([*starts, count])]


def _topics_by_rank(plan: TopicPlan) -> list[int]:
    """Return the number of topics in each namespace, the largest first.

    Sizes that the plan states keep their order.
    """
    if plan.sizes:
        return list(plan.sizes)
    if plan.skewed:
        weights = zipf_weights(plan.namespaces, plan.shape.namespace_skew)
        return dealt(plan.topics, weights)
    fewest, remainder = divmod(plan.topics, plan.namespaces)
    return [fewest + (index < remainder) for index in range(plan.namespaces)]


def _namespace_names(plan: TopicPlan) -> Iterator[tuple[str, str]]:
    """Yield the tenant and the local name of every namespace.

    The number of a tenant's namespaces follows Zipf's law.
    """
    if plan.shape.short:
        yield from ((f"t{index % 10}", f"n{index}") for index in range(plan.namespaces))
        return
    tenants = plan.shape.tenants or max(1, round(plan.namespaces**0.5))
    combinations = [f"{name}-{region}" for name in APPLICATIONS for region in REGIONS]
    of_tenants = dealt(plan.namespaces, zipf_weights(tenants, plan.shape.tenant_skew))
    for rank, held in enumerate(of_tenants):
        lap, word = divmod(rank, len(TENANTS))
        tenant = f"{TENANTS[word]}-{lap}" if lap else TENANTS[word]
        # Each tenant has its own order of the same combinations.
        start = int(counter_hash(plan.seed, _STREAM, np.array([rank], dtype=np.uint64))[0])
        for index in range(held):
            lap, place = divmod(index, len(combinations))
            name = combinations[(start + place * 37) % len(combinations)]
            yield tenant, f"{name}-{lap}" if lap else name
