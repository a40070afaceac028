"""The plan of a corpus: its size and proportions, and the namespaces that share its ids.

Ids 0 to ``topics - 1`` are dealt to the namespaces in the order of their names; each namespace gets
a contiguous range.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from loadgen.corpus import vocabulary as words
from loadgen.corpus.counter_hash import counter_hash

# The offsets of an Arrow string column have 31 bits; this many names stay below it.
MOST_TOPICS_PER_NAMESPACE = 2_000_000
_STREAM = 1
"""The random stream of the names of namespaces."""


@dataclass(frozen=True)
class TopicShape:
    """The proportions of a corpus.

    Attributes:
        mean_name_bytes: Mean length of a full name, ``persistent://`` and partition included.
        plain_share: Share of the listed names that belong to topics without partitions.
        tenant_skew: Exponent of the Zipf law by which tenants hold namespaces; 0 is even.
    """

    mean_name_bytes: int = 100
    plain_share: float = 0.15
    tenant_skew: float = 1.0

    def __post_init__(self) -> None:
        if not 90 <= self.mean_name_bytes <= 512:
            raise ValueError(
                f"The mean name length is {self.mean_name_bytes} bytes; it must be from 90 to 512."
            )
        if not 0.0 <= self.plain_share <= 1.0:
            raise ValueError(f"The plain share is {self.plain_share}; it must be from 0 to 1.")
        if not 0.0 <= self.tenant_skew <= 3.0:
            raise ValueError(f"The tenant skew is {self.tenant_skew}; it must be from 0 to 3.")

    def to_json(self) -> dict[str, Any]:
        """Return the proportions as the manifest records them."""
        return asdict(self)


@dataclass(frozen=True)
class TopicPlan:
    """The topics to make: listed names, namespaces, seed and proportions."""

    topics: int
    namespaces: int
    seed: int
    shape: TopicShape = field(default_factory=TopicShape)

    def __post_init__(self) -> None:
        if self.namespaces < 1:
            raise ValueError(f"{self.namespaces} namespaces were asked for; at least 1 is needed.")
        if self.topics < self.namespaces:
            raise ValueError(
                f"{self.topics} topics cannot fill {self.namespaces} namespaces; "
                "ask for at least one topic a namespace."
            )
        if -(-self.topics // self.namespaces) > MOST_TOPICS_PER_NAMESPACE:
            raise ValueError(
                f"{self.topics} topics in {self.namespaces} namespaces are more than "
                f"{MOST_TOPICS_PER_NAMESPACE} a namespace; ask for more namespaces."
            )
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"The seed is {self.seed}; it must be from 0 to 2^63 - 1.")


@dataclass(frozen=True)
class NamespacePlan:
    """One namespace of a plan: its name and its range of ids."""

    tenant: str
    name: str
    first_id: int
    topics: int


def plan_namespaces(plan: TopicPlan) -> list[NamespacePlan]:
    """Return the namespaces of a plan in the order of their names, ids dealt out evenly.

    Where the number of topics is no multiple, the first namespaces have one more.
    """
    names = sorted(_namespace_names(plan))
    fewest, remainder = divmod(plan.topics, plan.namespaces)
    planned = []
    first_id = 0
    for index, (tenant, local) in enumerate(names):
        topics = fewest + (index < remainder)
        planned.append(NamespacePlan(tenant, f"{tenant}/{local}", first_id, topics))
        first_id += topics
    return planned


def part_namespaces(plan: TopicPlan, part: int, parts: int) -> list[NamespacePlan]:
    """Return the namespaces of one of ``parts`` parts: a contiguous range, whole namespaces."""
    planned = plan_namespaces(plan)
    return planned[part * len(planned) // parts : (part + 1) * len(planned) // parts]


def _namespace_names(plan: TopicPlan) -> list[tuple[str, str]]:
    """Return (tenant, local name) of every namespace; tenants hold them by Zipf's law."""
    named = []
    for rank, held in enumerate(_namespaces_per_tenant(plan)):
        lap, word = divmod(rank, len(words.TENANTS))
        tenant = words.TENANTS[word] + (f"-{lap}" if lap else "")
        # Each tenant has its own order of the same combinations.
        start = int(counter_hash(plan.seed, _STREAM, np.array([rank], dtype=np.uint64))[0])
        named += [(tenant, _namespace_name(start, index)) for index in range(held)]
    return named


def _namespace_name(start: int, index: int) -> str:
    """Return the local name of a tenant's namespace number ``index``, unique in the tenant."""
    combinations = len(words.APPLICATIONS) * len(words.REGIONS)
    lap, place = divmod(index, combinations)
    application, region = divmod((start + place * 37) % combinations, len(words.REGIONS))
    name = f"{words.APPLICATIONS[application]}-{words.REGIONS[region]}"
    return f"{name}-{lap}" if lap else name


def _namespaces_per_tenant(plan: TopicPlan) -> list[int]:
    """Deal the namespaces to tenants: one each, the rest in proportion to 1 / rank^skew."""
    tenants = max(1, round(plan.namespaces**0.5))
    weights = 1.0 / np.arange(1, tenants + 1) ** plan.shape.tenant_skew
    shares = np.cumsum(weights) / weights.sum() * (plan.namespaces - tenants)
    dealt = np.diff(np.rint(shares).astype(np.int64), prepend=0)
    return [1 + int(count) for count in dealt]
