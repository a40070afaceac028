"""The clusters for advice: shapes of a seeded generator.

Odd clusters are crowds at tight limits, with clients that limits can help.

Each namespace is one partitioned topic, so that a real broker creates a hundred thousand names in
seconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import get_args

from loadgen.behaviours.discover import Discover, Family
from loadgen.plan.group import Reader
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape, Question
from proto.names import TopicName

CLUSTERS = 12
NETWORK_BYTES, LOOPBACK_BYTES = 98_304, 4_194_304
"""Bytes of an answer between broker and client: with bounded send buffers, and without."""
SMALL_BUFFER_BYTES, USUAL_BUFFER_BYTES = 65_536, 4_194_304
"""Largest send buffer in the proof's separate network (net.ipv4.tcp_wmem)."""
SEARCH_SECONDS = 240.0
GOAL, POLITE_GOAL, SHIPPED = Goal(), Goal(back_within_seconds=100.0), Limits()
"""Polite clients request their watch up to 90 s after their list, whatever the limits."""
_LARGEST_ANSWER_BYTES = 4_500_000
"""Below the frame limit of 5 MB, above which limits are no help."""
_TIGHT_MB = (1, 2, 3)
_RATES = (200_000.0, 400_000.0, 1_000_000.0)


@dataclass(frozen=True)
class ProvenCluster:
    """A cluster and its clients' load.

    Attributes:
        sizes: Names in each namespace's listing, the largest first.
        name_bytes: Bytes of a name.
        read_rate: Bytes a second that a client reads; 0: unbounded.
        today: The effective limits.
    """

    name: str
    sizes: tuple[int, ...]
    name_bytes: int
    families: Mapping[Family, int]
    today: Limits = SHIPPED
    read_rate: float = 0.0
    goal: Goal = GOAL

    @property
    def title(self) -> str:
        families = ", ".join(f"{count:,} {family}" for family, count in self.families.items())
        speed = f" at {self.read_rate / 1000:.0f} kB/s" if self.read_rate else ""
        return (
            f"{sum(self.sizes):,} topics in {len(self.sizes)} namespaces (largest {self.sizes[0]:,}"
            f", names of {self.name_bytes} bytes), {families}{speed}, today "
            f"{self.today.heap_mb} and {self.today.direct_mb} MB"
        )

    @property
    def send_buffer_bytes(self) -> int:
        """Largest send buffer of the network: with default buffers no reader is slow."""
        return SMALL_BUFFER_BYTES if self.read_rate else USUAL_BUFFER_BYTES

    def topics(self) -> list[tuple[TopicName, int]]:
        """Return the partitioned topic of each namespace and its partitions."""
        found = []
        for number, size in enumerate(self.sizes):
            head = f"persistent://advice-{self.name}/ns{number:03d}/"
            # Most partitions have names with the largest number of digits.
            digits = len(str(size - 1))
            base = "t" * max(1, self.name_bytes - len(head) - len("-partition-") - digits)
            found.append((TopicName.parse(head + base), size))
        return found

    def question(self, seconds: float = SEARCH_SECONDS) -> Question:
        """Return the advice's question, with namespaces as their listings are."""
        shapes = tuple(
            NamespaceShape(
                str(topic.namespace),
                size,
                sum(len(f"{topic}-partition-{each}") for each in range(size)),
            )
            for topic, size in self.topics()
        )
        groups = tuple(
            Discover(
                name=family, library=family, count=count, read=Reader(rate=self.read_rate or None)
            )
            for family, count in self.families.items()
        )
        network = NETWORK_BYTES if self.read_rate else LOOPBACK_BYTES
        return Question(
            groups,
            shapes,
            self.goal,
            "pulsar",
            Setting(self.today),
            network,
            seconds=seconds,
        )


def cluster(seed: int) -> ProvenCluster:
    """Return the cluster of a seed; odd seeds are crowds at tight limits."""
    draw, crowd = Random(seed), seed % 2 == 1

    def between(low: float, high: float) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    namespaces, name_bytes = between(1, 150), draw.randint(52, 120)
    topics = draw.randint(1_000, 100_000)
    skew = draw.choice((0.0, 1.0))
    weights = [1 / (1 + number) ** skew for number in range(namespaces)]
    most = _LARGEST_ANSWER_BYTES // (name_bytes + 3)
    sizes = [min(most, max(1, round(topics * each / sum(weights)))) for each in weights]
    known = [each for each in get_args(Family) if not crowd or each != "polite"]
    clients = between(500 if crowd else 40, 2_000)
    kinds = draw.sample(known, draw.randint(1, 3))
    families = dict.fromkeys(kinds, max(1, clients // len(kinds)))
    answers = clients * sum(sizes) / namespaces * name_bytes
    # Slow readers of large lists would exceed their patience, whatever the limits.
    slow = draw.random() < 0.3 and max(sizes) * name_bytes < 2_000_000 and answers < 1e9
    tight = draw.choice(_TIGHT_MB) if crowd else 100
    return ProvenCluster(
        f"{seed:02d}",
        tuple(sizes),
        name_bytes,
        families,
        Limits(heap_mb=tight, direct_mb=tight),
        draw.choice(_RATES) if slow else 0.0,
        POLITE_GOAL if "polite" in kinds else GOAL,
    )


TRIAL = ProvenCluster(
    "trial",
    (25_000, *(3_182 for _ in range(11))),
    117,
    {"java-watch": 600, "cpp": 100},
    Limits(),
)
"""The cluster of an operator's trial, whose advice of 4 and 3 MB failed on a real broker."""
ALL = (TRIAL, *map(cluster, range(1, CLUSTERS + 1)))
