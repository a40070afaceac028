"""Immutable snapshots of a namespace's topics, which share unchanged parts with earlier ones."""

from __future__ import annotations

from heapq import merge
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.stores.snapshots.partition_counts import NAMES_AT_ONCE, NO_COUNTS, PartitionCounts
from broker.topic_lists.sequence import NO_NAMES, TopicListing, TopicSequence
from proto.names import PERSISTENT, TopicName, is_system_topic
from proto.topic_hash import java_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from broker.stores.changes import TopicChanges

    Mode: TypeAlias = pb.CommandGetTopicsOfNamespace.Mode.ValueType

_PERSISTENT_SCHEME = f"{PERSISTENT}://".encode()


class NamespaceSnapshot:
    """An immutable snapshot of all topics of one version of a namespace.

    Attributes:
        version: Increases by one with every change.
        persistent: User topics of the persistent domain, partitions one by one.
        non_persistent: User topics of the non-persistent domain.
        system: System topics, hidden from listings.
        partitioned: Partition counts by full base name.
    """

    __slots__ = ("_listings", "non_persistent", "partitioned", "persistent", "system", "version")

    def __init__(
        self,
        version: int = 0,
        persistent: TopicSequence = NO_NAMES,
        non_persistent: TopicSequence = NO_NAMES,
        system: frozenset[bytes] = frozenset(),
        partitioned: PartitionCounts = NO_COUNTS,
    ) -> None:
        self.version = version
        self.persistent = persistent
        self.non_persistent = non_persistent
        self.system = system
        self.partitioned = partitioned
        self._listings: dict[Mode, TopicListing] = {}

    def __repr__(self) -> str:
        return f"<NamespaceSnapshot version {self.version}, {self.persistent!r}>"

    @staticmethod
    def from_rows(
        version: int, names: Sequence[bytes], partitioned: Mapping[str, int]
    ) -> NamespaceSnapshot:
        """Build a snapshot from distinct names in bytewise order, as databases return them."""
        kinds = by_kind(names)
        return NamespaceSnapshot(
            version,
            _sequence(kinds.persistent, in_order=True),
            _sequence(kinds.non_persistent, in_order=True),
            frozenset(kinds.system),
            PartitionCounts.of(partitioned),
        )

    @property
    def wire_bytes(self) -> int:
        """Size in bytes of the names of all user topics, as encoded for a response."""
        return self.persistent.totals.wire_bytes + self.non_persistent.totals.wire_bytes

    @property
    def empty(self) -> bool:
        """True if the namespace has no user topics and no partitioned topics."""
        return not (self.persistent or self.non_persistent or self.partitioned)

    @property
    def holds_nothing(self) -> bool:
        """True if the namespace has no topics at all, not even system topics."""
        return not (self.persistent or self.non_persistent or self.system)

    def listing(self, mode: Mode) -> TopicListing:
        """Return the list of a mode's user topics; each call returns the same object."""
        listing = self._listings.get(mode)
        if listing is None:
            listing = self._listings[mode] = TopicListing(*self._sequences(mode))
        return listing

    def _sequences(self, mode: Mode) -> tuple[TopicSequence, ...]:
        if mode == pb.CommandGetTopicsOfNamespace.PERSISTENT:
            return (self.persistent,)
        if mode == pb.CommandGetTopicsOfNamespace.NON_PERSISTENT:
            return (self.non_persistent,)
        # "non-persistent://" sorts before "persistent://": concatenation keeps the order.
        return (self.non_persistent, self.persistent)

    def selection(self, names: Sequence[bytes], mode: Mode) -> TopicListing:
        """Return those of the given topics that belong to the mode, as a list for a response.

        Args:
            names: Topics, distinct and in bytewise order, as databases return them.
            mode: The mode.
        """
        return NamespaceSnapshot.from_rows(self.version, names, {}).listing(mode)

    def contains(self, topic: TopicName) -> bool:
        """Return True if a topic or partitioned topic with this name exists."""
        return self.exists(str(topic))

    def exists(self, name: str) -> bool:
        """Return True if a topic or partitioned topic with this full name exists."""
        return name in self.partitioned or self.holds(name.encode())

    def holds(self, name: bytes) -> bool:
        """Return True if a topic or partition of this name exists (not a partitioned topic)."""
        persistent = name.startswith(_PERSISTENT_SCHEME)
        return name in (self.persistent if persistent else self.non_persistent) or (
            name in self.system
        )

    def changed(self, changes: TopicChanges, version: int | None = None) -> NamespaceSnapshot:
        """Return the snapshot after a change; its version is the next one, or ``version``."""
        added, removed = by_kind(changes.added), by_kind(changes.removed)
        return NamespaceSnapshot(
            self.version + 1 if version is None else version,
            _next(self.persistent, added.persistent, removed.persistent),
            _next(self.non_persistent, added.non_persistent, removed.non_persistent),
            self._next_system(added.system, removed.system),
            self.partitioned.changed(changes.partitioned),
        )

    def _next_system(self, added: Sequence[bytes], removed: Sequence[bytes]) -> frozenset[bytes]:
        return (self.system.union(added)).difference(removed) if added or removed else self.system


class NamesByKind(NamedTuple):
    """Topic names grouped by kind: persistent, non-persistent, system; otherwise in input order."""

    persistent: Sequence[bytes]
    non_persistent: Sequence[bytes]
    system: Sequence[bytes]


_NO_KIND = NamesByKind((), (), ())


def by_kind(names: Sequence[bytes]) -> NamesByKind:
    """Return topic names in three groups: persistent, non-persistent and system topics."""
    if not names:
        return _NO_KIND
    if len(names) <= NAMES_AT_ONCE:
        return _few_by_kind(names)
    kinds = [_few_by_kind(part) for part in _parts(names)]
    return NamesByKind(*(list(chain.from_iterable(same)) for same in zip(*kinds, strict=True)))


def _few_by_kind(names: Sequence[bytes]) -> NamesByKind:
    # A system topic contains two underscores or is in pulsar/system: most lists have neither.
    joined = b"\n".join(names)
    some = b"__" in joined or b"//pulsar/system/" in joined
    system = [name for name in names if is_system_topic(name.decode())] if some else []
    hidden = frozenset(system)
    user = [name for name in names if name not in hidden] if hidden else names
    persistent = [name for name in user if name.startswith(_PERSISTENT_SCHEME)]
    if len(persistent) == len(user):
        return NamesByKind(persistent, [], system)
    rest = [name for name in user if not name.startswith(_PERSISTENT_SCHEME)]
    return NamesByKind(persistent, rest, system)


def _next(
    sequence: TopicSequence, added: Sequence[bytes], removed: Sequence[bytes]
) -> TopicSequence:
    if not (added or removed):
        return sequence
    if sequence or removed or len(added) <= NAMES_AT_ONCE:
        return sequence.apply(added, removed)
    return _sequence(added, in_order=False)


def _sequence(names: Sequence[bytes], *, in_order: bool) -> TopicSequence:
    """Build a TopicSequence of names in steps, each of which blocks other threads only briefly.

    Args:
        names: The names; distinct, if in order.
        in_order: Whether the names are in bytewise order, equal to Java's up to U+DFFF.
    """
    plain = all(b"".join(part).isascii() for part in _parts(names))
    if in_order and plain:
        return TopicSequence.from_sorted(names)
    if len(names) <= NAMES_AT_ONCE:
        return TopicSequence.from_names(names)
    key = None if plain else java_order
    runs = [sorted(set(part), key=key) for part in _parts(names)]
    return TopicSequence.from_sorted([name for name, _ in groupby(merge(*runs, key=key))])


def _parts(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (names[at : at + NAMES_AT_ONCE] for at in range(0, len(names), NAMES_AT_ONCE))
