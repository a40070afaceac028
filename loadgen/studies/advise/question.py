"""The question that ``loadgen advise`` answers, and the scenarios of its restart storms."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml

from limiter.memory.size_estimate import BYTES_PER_NAME
from loadgen.documents.service_times import PULSAR, SERVICE_TIMES, ServiceTimes
from loadgen.errors import UsageError
from loadgen.topics.plan import SHORTEST_NAME_BYTES, UNIQUE_DIGITS
from proto.frames import FRAME_PADDING_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.documents.model import Document, Profile
    from loadgen.jvm_options import JvmOptions
    from loadgen.plan.group import Group, Reader
    from loadgen.studies.advise.goal import Goal
    from loadgen.studies.advise.limits import Setting

LONGEST_SECONDS = 86_400.0
LOOKUP_KEYS = {"broker": "maxConcurrentLookupRequest", "proxy": "maxConcurrentLookupRequests"}
"""Keys of the permits for lookups, lists and watches."""
MORE_KEYS: Mapping[str, tuple[str, ...]] = {
    "broker": (LOOKUP_KEYS["broker"], "subscriptionPatternMaxLength"),
    "proxy": (LOOKUP_KEYS["proxy"],),
}
"""Keys of the operator's files that affect the outcome, beside the advised keys."""
LOOKUP_REFUSALS = {
    "broker": "too many pending lookup requests",
    "proxy": "Too many concurrent lookup",
}
"""Text of refusals that are caused by too few permits for lookups, by server."""
ONCE = "once"
"""Family of clients that list once without retries; all other families are libraries."""
WATCHING = frozenset({"polite", "java-watch"})
"""Families whose clients request a watch after the first list."""
MOST_SIZES = 16
"""Maximum number of sizes kept exactly; more become groups of at most two sizes each."""
RECEIVE_BUFFER_BYTES, LEAST_BUFFER_BYTES = 65_536, 4_096
LONGEST_NAME_BYTES, LONGEST_ONE_BYTE_LENGTH, ANSWER_HEAD_BYTES = 512, 127, 40
_KEPT = {"name", "count", "arrive", "after", "read", "timeout", "library", "period", "restart"}
"""Keys of a listing or discovering group that the storm's document keeps."""
_ALIKE, _WIDTH = 0.02, 100
_LONGER = 1.5
"""Length of a storm, as a multiple of the goal's time, to measure how far a goal is missed."""


@dataclass(frozen=True)
class NamespaceShape:
    """The name and size of a namespace: the number of names in a listing, and their bytes."""

    name: str
    topics: int
    name_bytes: int

    @property
    def charged_bytes(self) -> int:
        """The heap memory that Pulsar's limiter charges for a listing, in bytes.

        It is the length of all names, and 32 bytes more for each name.
        """
        return self.name_bytes + BYTES_PER_NAME * self.topics

    @property
    def answer_bytes(self) -> int:
        """The size of the answer to a list request, in bytes of direct memory."""
        long_names = self.topics and self.name_bytes / self.topics > LONGEST_ONE_BYTE_LENGTH
        return self.name_bytes + self.topics * (3 if long_names else 2) + ANSWER_HEAD_BYTES


@dataclass(frozen=True, eq=False)
class Question:
    """A load of clients and namespaces, and the goal that topic-list limits have to meet.

    A question is equal only to itself.

    Attributes:
        groups: Groups of clients that list or discover topics: client *i* of a group uses namespace
            *i* modulo their number, the largest first.
        today: The present limits: those of the operator's files, or the defaults.
        network_bytes: Bytes of an answer that socket buffers and network hold, outside the server's
            memory.
        max_message_bytes: Value of the key ``maxMessageSize``.
        lookups: Value of the key ``maxConcurrentLookupRequest``: the largest number of lists and
            watches in flight.
        times: Service times of the simulated servers.
        jvm: Memory limits of the broker's JVM; None if its options are not known.
        seed: Seed of all random choices.
        seconds: Time limit of the search.
        more: Further keys of the operator's files that affect the outcome, by role; see
            ``MORE_KEYS``.
        strain: Words on how the load is harder than stated; empty for the question as stated.
    """

    groups: tuple[Group, ...]
    namespaces: tuple[NamespaceShape, ...]
    goal: Goal
    profile: Profile
    today: Setting
    network_bytes: int = 131_072
    max_message_bytes: int = 5 * 1024 * 1024
    lookups: int = 50_000
    times: ServiceTimes = PULSAR
    jvm: JvmOptions | None = None
    seed: int = 1
    seconds: float = 120.0
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    strain: str = ""

    @property
    def stated_times(self) -> str | None:
        """The profile whose service times the storms use; None if they come from elsewhere."""
        return next((name for name, each in SERVICE_TIMES.items() if each == self.times), None)

    @property
    def proxy(self) -> bool:
        """True if clients connect through a proxy."""
        return self.today.proxy is not None

    # -- clients ------------------------------------------------------------------------------

    @property
    def clients(self) -> int:
        """The number of clients in all groups."""
        return sum(group.count for group in self.groups)

    @property
    def families(self) -> Counter[str]:
        """The number of clients of each client library; clients without one count as ``once``."""
        found: Counter[str] = Counter()
        for group in self.groups:
            found[group.family or ONCE] += group.count
        return found

    @property
    def usual(self) -> Group:
        """The largest group of clients, whose timeout and speed determine the servers' timeouts."""
        return max(self.groups, key=lambda group: group.count)

    @property
    def spread_seconds(self) -> float:
        """The number of seconds until the last client starts; 0 if all start together."""
        return max(
            each.after + max(each.arrive.moments(each.count, self.seed)) for each in self.groups
        )

    @property
    def storm_seconds(self) -> float:
        """The longest duration of a storm, in seconds.

        It is long enough for each client, also the last to start, to meet or miss the goal.
        """
        seconds = self.spread_seconds + _LONGER * self.goal.back_within_seconds
        return min(seconds, LONGEST_SECONDS)

    def held_seconds(self, read: Reader, answer_bytes: int) -> float:
        """Return the seconds that an answer is in direct memory while the client reads it."""
        return reading_seconds(read, max(0, answer_bytes - self.network_bytes))

    # -- namespaces ---------------------------------------------------------------------------

    @cached_property
    def listed(self) -> tuple[NamespaceShape, ...]:
        """The namespaces that clients list, the largest first.

        Each group lists them in this order.
        """
        by_size = sorted(self.namespaces, key=lambda each: (-each.charged_bytes, each.name))
        return tuple(by_size[: self.usual.count])

    @property
    def largest(self) -> NamespaceShape:
        """The namespace with the largest answer, which every limit has to allow."""
        return self.listed[0]

    @cached_property
    def mean(self) -> NamespaceShape:
        """An imaginary namespace that has the mean size of the listed namespaces."""
        topics = fmean(each.topics for each in self.listed)
        name_bytes = fmean(each.name_bytes for each in self.listed)
        return NamespaceShape("mean", round(topics), round(name_bytes))

    @property
    def frame_limit_bytes(self) -> int:
        """The size of the largest answer that a client accepts without disconnecting."""
        return self.max_message_bytes + FRAME_PADDING_BYTES


def reading_seconds(read: Reader, answer_bytes: int) -> float:
    """Return the number of seconds that a client reads an answer; infinite if it never reads."""
    if read.never:
        return math.inf
    return answer_bytes / read.rate if read.rate else 0.0


def listing_groups(document: Document) -> tuple[Group, ...]:
    """Return the groups of a scenario whose clients list or discover topics.

    Raises:
        UsageError: No group lists or discovers topics.
    """
    groups = tuple(each for each in document.clients if each.operations[0] == "list")
    if not groups:
        raise UsageError(f"{document.name} has no clients that list or discover topics")
    return groups


# -- the document ---------------------------------------------------------------------------------


def document_text(question: Question, setting: Setting) -> str:
    """Return a scenario as YAML that checks limits by running the storm of a question."""
    return as_text(storm_document(question, setting))


def as_text(document: dict[str, Any]) -> str:
    """Format a scenario document as YAML."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def storm_document(question: Question, setting: Setting) -> dict[str, Any]:
    """Return the scenario that runs the restart storm of a question with given limits."""
    goal, network_bytes = question.goal, question.network_bytes
    receive = max(LEAST_BUFFER_BYTES, min(RECEIVE_BUFFER_BYTES, network_bytes // 2))
    more = {
        "floodgateSocketSendBufferBytes": max(LEAST_BUFFER_BYTES, network_bytes - receive),
        "maxMessageSize": question.max_message_bytes,
    }
    servers = {
        role: {**keys, **more, **question.more.get(role, {})}
        for role, keys in setting.keys().items()
    }
    times = question.stated_times or question.times.model_dump()
    return {
        "name": "advice",
        "description": f"Checks an advice: {goal}.",
        "seed": question.seed,
        "topics": _topics(question),
        # By default the advice is for a real Pulsar.
        "servers": {"profile": question.profile, "service_times": times, **servers},
        "clients": [_storming(group, receive) for group in question.groups],
        "phases": {"measure": question.storm_seconds, "drain": 0},
        "expect": [
            f"clients.back.p{max(0.1, 100 * (1 - goal.refused_share)):.10g} <= "
            f"{goal.back_within_seconds:.10g}s",
            f"clients.refused.rate <= {100 * goal.refused_share:.10g}%",
        ],
    }


def _storming(group: Group, receive_buffer: int) -> dict[str, Any]:
    said = group.model_dump(mode="json", include=_KEPT, exclude_defaults=True)
    said["read"] = {**said.get("read", {}), "buffer": receive_buffer}
    return {"do": "discover" if group.family else "list", **said}


def _topics(question: Question) -> dict[str, Any]:
    """Return the topics of a storm's scenario: namespaces of about the same sizes as the real ones.

    All topic names have the mean length of the real names. For a namespace with longer or shorter
    names the number of names is adjusted, so that the list has the right size.
    """
    name_bytes = round(question.mean.name_bytes / max(1, question.mean.topics))
    name_bytes = min(max(name_bytes, SHORTEST_NAME_BYTES), LONGEST_NAME_BYTES)

    def names(shape: NamespaceShape) -> int:
        least = len(f"persistent://{shape.name}/") + UNIQUE_DIGITS
        alike = round(shape.charged_bytes / (max(name_bytes, least) + BYTES_PER_NAME))
        return max(1, shape.topics if abs(alike / shape.topics - 1) < _ALIKE else alike)

    first, *further = [
        {"namespaces": count, "per_namespace": size}
        for count, size in size_classes([names(each) for each in question.listed])
    ]
    own = [each.name for each in sorted(question.listed, key=names, reverse=True)]
    made = {"mean_name_bytes": name_bytes, "seed": question.seed}
    return {**first, **made, "further": further, "names": own}


def size_classes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of a number of namespaces and the number of names in each, largest first.

    The result has the same number of namespaces, number of all names, and largest namespaces.
    """
    ordered = sorted(sizes, reverse=True)
    if len(set(ordered)) > MOST_SIZES:
        largest = ordered.count(ordered[0])
        ordered = ordered[:largest] + sorted(_evened(ordered[largest:]), reverse=True)
    return [(count, size) for size, count in Counter(ordered).items()]


def _evened(ordered: Sequence[int]) -> Iterator[int]:
    """Replace sizes by fewer different ones that have the same sum."""
    groups: list[list[int]] = [[] for _ in range(MOST_SIZES)]
    total, before = sum(ordered), 0
    for size in ordered:
        groups[before * MOST_SIZES // total].append(size)
        before += size
    for group in filter(None, groups):
        each, more = divmod(sum(group), len(group))
        yield from (each + (index < more) for index in range(len(group)))
