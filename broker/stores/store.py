"""The interface every topic store has, and the values it deals in.

Stores are asynchronous; snapshots are immutable; changes are numbered per namespace without a
gap, so that who missed one knows to list again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from proto.names import PERSISTENT, NamespaceName, TopicName, is_system_topic
from proto.topic_blocks import TopicSequence
from proto.topic_listing import TopicListing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from broker.stores.feed import ChangeFeed
    from broker.stores.properties import PropertyRows

    Mode: TypeAlias = pb.CommandGetTopicsOfNamespace.Mode.ValueType

_PERSISTENT_SCHEME = f"{PERSISTENT}://".encode()


class StoreError(Exception):
    """A store cannot do what it was asked for; one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to add and remove in one namespace, all or nothing.

    Attributes:
        added: Full names as UTF-8; partitions of partitioned topics one by one.
        removed: Full names as UTF-8; a name that is added, too, is gone.
        partitioned: Partition counts of partitioned topics, by full base name; 0 forgets one.
        properties: Property columns beside ``added``; they replace all that a topic had. None
            without any.
    """

    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    partitioned: Mapping[str, int] = field(default_factory=dict)
    properties: PropertyRows | None = None


class NamespaceSnapshot:
    """One version of a namespace.

    Attributes:
        version: Counts up by one with every change.
        persistent: User topics of the persistent domain, partitions one by one.
        non_persistent: User topics of the other domain.
        system: System topics, which listings hide.
        partitioned: Partition counts by full base name.
    """

    __slots__ = ("_listings", "non_persistent", "partitioned", "persistent", "system", "version")

    def __init__(
        self,
        version: int = 0,
        persistent: TopicSequence | None = None,
        non_persistent: TopicSequence | None = None,
        system: frozenset[bytes] = frozenset(),
        partitioned: Mapping[str, int] | None = None,
    ) -> None:
        self.version = version
        self.persistent = persistent or TopicSequence()
        self.non_persistent = non_persistent or TopicSequence()
        self.system = system
        self.partitioned: Mapping[str, int] = partitioned or {}
        self._listings: dict[Mode, TopicListing] = {}

    def __repr__(self) -> str:
        return f"<NamespaceSnapshot version {self.version}, {self.persistent!r}>"

    @property
    def wire_bytes(self) -> int:
        """Bytes of both domains' blocks."""
        return self.persistent.totals.wire_bytes + self.non_persistent.totals.wire_bytes

    def listing(self, mode: Mode) -> TopicListing:
        """Return the user topics of a mode; the same object at each call."""
        listing = self._listings.get(mode)
        if listing is None:
            listing = self._listings[mode] = TopicListing(*self._sequences(mode))
        return listing

    def _sequences(self, mode: Mode) -> tuple[TopicSequence, ...]:
        if mode == pb.CommandGetTopicsOfNamespace.PERSISTENT:
            return (self.persistent,)
        if mode == pb.CommandGetTopicsOfNamespace.NON_PERSISTENT:
            return (self.non_persistent,)
        # "non-persistent://" sorts before "persistent://": side by side they are in order.
        return (self.non_persistent, self.persistent)

    def contains(self, topic: TopicName) -> bool:
        """Tell whether the topic exists, partitioned topics included."""
        name = str(topic)
        encoded = name.encode()
        sequence = self.persistent if topic.persistent else self.non_persistent
        return name in self.partitioned or encoded in sequence or encoded in self.system

    def changed(self, changes: TopicChanges) -> NamespaceSnapshot:
        """Return the next version, with the changes applied."""
        added, removed = _by_kind(changes.added), _by_kind(changes.removed)
        partitioned = {**self.partitioned, **changes.partitioned}
        return NamespaceSnapshot(
            self.version + 1,
            self.persistent.apply(added.persistent, removed.persistent),
            self.non_persistent.apply(added.non_persistent, removed.non_persistent),
            (self.system | frozenset(added.system)) - frozenset(removed.system),
            {name: count for name, count in partitioned.items() if count},
        )


@dataclass(frozen=True, slots=True)
class _ByKind:
    persistent: list[bytes]
    non_persistent: list[bytes]
    system: list[bytes]


def _by_kind(names: Sequence[bytes]) -> _ByKind:
    # A system topic has two underscores or lies in pulsar/system: most lists have none of either.
    joined = b"\n".join(names)
    some = b"__" in joined or b"//pulsar/system/" in joined
    system = [name for name in names if is_system_topic(name.decode())] if some else []
    hidden = frozenset(system)
    user = [name for name in names if name not in hidden] if hidden else names
    persistent = [name for name in user if name.startswith(_PERSISTENT_SCHEME)]
    if len(persistent) == len(user):
        return _ByKind(persistent, [], system)
    rest = [name for name in user if not name.startswith(_PERSISTENT_SCHEME)]
    return _ByKind(persistent, rest, system)


class MetadataStore(Protocol):
    """Where topics live (``metadataStoreUrl``)."""

    async def open(self) -> None:
        """Make the store ready.

        Raises:
            StoreError: It cannot be opened; one sentence.
        """

    async def close(self) -> None:
        """Let go of files and threads; what was applied stays."""

    async def namespaces(self) -> Sequence[NamespaceName]:
        """Return the namespaces that exist, in order."""

    async def create_namespace(self, namespace: NamespaceName) -> bool:
        """Create an empty namespace; false when it exists."""

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version of a namespace; None when it does not exist."""

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate if it is known without waiting, else None."""

    async def select(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> TopicSequence:
        """Return the persistent user topics that have every given property (equality, AND)."""

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Apply changes at once, creating the namespace if need be; return its new version.

        Once this returns the change is as durable as the store is, and in the feed.
        """

    def changes(self) -> ChangeFeed:
        """Return a new feed of everything that is applied from now on, in order."""
