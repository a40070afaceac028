"""The clusters that advice is given for, and the real broker that is to prove it right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.behaviours.discover import Discover, Family
from loadgen.plan.group import Reader
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape, Question
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NETWORK_BYTES = 98_304
"""What lies between broker and client where the kernel's send buffers are bounded."""
LOOPBACK_BYTES = 4_194_304
"""The same where they are not: whole answers."""
SMALL_BUFFER_BYTES, USUAL_BUFFER_BYTES = 65_536, 4_194_304
"""The most that a send buffer may have in the proof's own network (net.ipv4.tcp_wmem)."""

SEARCH_SECONDS = 240.0


@dataclass(frozen=True)
class ProvenCluster:
    """A cluster of namespaces, each one partitioned topic, and what its clients want.

    Attributes:
        partitions: Names that a listing of each namespace has.
        base: Local part of the topic; its length decides the size of an answer.
        afresh: Whether each storm needs a broker that has listed nothing before.
        send_buffer_bytes: Of its network: with the usual ones no reader is slow.
    """

    name: str
    title: str
    namespaces: int
    partitions: int
    families: Mapping[Family, int]
    goal: Goal
    base: str = "t" * 60
    read_rate: float = 0.0
    network_bytes: int = LOOPBACK_BYTES
    operation_timeout_seconds: float = 30.0
    afresh: bool = False
    send_buffer_bytes: int = USUAL_BUFFER_BYTES

    @property
    def tenant(self) -> str:
        """Of all its namespaces."""
        return f"advice-{self.name}"

    def topics(self) -> Iterator[TopicName]:
        """Yield the partitioned topic of each namespace."""
        for number in range(self.namespaces):
            yield TopicName.parse(f"persistent://{self.tenant}/ns{number:04d}/{self.base}")

    def question(self) -> Question:
        """Return what is asked, with namespaces as their listings are."""
        shapes = tuple(
            NamespaceShape(
                str(topic.namespace),
                self.partitions,
                sum(len(f"{topic}-partition-{each}") for each in range(self.partitions)),
            )
            for topic in self.topics()
        )
        groups = tuple(
            Discover(
                name=family,
                library=family,
                count=count,
                timeout=self.operation_timeout_seconds,
                read=Reader(rate=self.read_rate or None),
            )
            for family, count in self.families.items()
        )
        return Question(
            groups,
            shapes,
            self.goal,
            "pulsar",
            Setting(Limits()),
            self.network_bytes,
            seconds=SEARCH_SECONDS,
        )


CLUSTERS = (
    ProvenCluster(
        "twenty",
        "20 namespaces of 10,000, 1,000 clients that read as fast as it comes",
        namespaces=20,
        partitions=10_000,
        families={"cpp": 500, "go": 500},
        goal=Goal(back_within_seconds=40.0),
        base="t" * 70,
    ),
    ProvenCluster(
        "large",
        "one namespace of 40,000, 4 MB an answer, 40 clients that read 700 kB/s",
        namespaces=1,
        partitions=40_000,
        families={"cpp": 40},
        goal=Goal(back_within_seconds=57.0),
        base="t" * 60,
        read_rate=700_000.0,
        network_bytes=NETWORK_BYTES,
        operation_timeout_seconds=75.0,
        send_buffer_bytes=SMALL_BUFFER_BYTES,
    ),
    ProvenCluster(
        "many",
        "1,000 namespaces of 200, four families of together 2,000 clients",
        namespaces=1_000,
        partitions=200,
        families={"java-watch": 600, "cpp": 600, "go": 400, "java-poll": 400},
        goal=Goal(back_within_seconds=40.0),
        afresh=True,
    ),
)
