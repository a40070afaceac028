"""The store of ``memory:local``: as fast as it gets, gone with the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.stores.feed import Change, ChangeFeed, ChangeFeeds
from broker.stores.properties import PropertyColumns
from broker.stores.store import NamespaceSnapshot, TopicChanges
from proto.topic_blocks import TopicSequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.stores.store import Mode
    from proto.names import NamespaceName


class MemoryStore:
    """Namespaces as immutable snapshots in a dict. See MetadataStore.

    Bound: none of its own; it *is* the namespaces, about their names' bytes + 10 %.
    """

    def __init__(self) -> None:
        self._snapshots: dict[NamespaceName, NamespaceSnapshot] = {}
        self._properties: dict[NamespaceName, PropertyColumns] = {}
        self._feeds = ChangeFeeds()

    def __repr__(self) -> str:
        return f"<MemoryStore {len(self._snapshots)} namespaces>"

    async def open(self) -> None:
        """Nothing to make ready."""

    async def close(self) -> None:
        """End every feed."""
        self._feeds.close()

    async def namespaces(self) -> Sequence[NamespaceName]:
        """Return the namespaces that exist, in order."""
        return sorted(self._snapshots, key=str)

    async def create_namespace(self, namespace: NamespaceName) -> bool:
        """Create an empty namespace; false when it exists."""
        if namespace in self._snapshots:
            return False
        self._snapshots[namespace] = NamespaceSnapshot()
        return True

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version of a namespace; None when it does not exist."""
        return self._snapshots.get(namespace)

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate; 0 for a namespace that does not exist."""
        snapshot = self._snapshots.get(namespace)
        return snapshot.listing(mode).estimated_bytes if snapshot is not None else 0

    async def select(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> TopicSequence:
        """Return the persistent user topics that have every given property."""
        snapshot = self._snapshots.get(namespace)
        if snapshot is None or not properties:
            return snapshot.persistent if snapshot is not None else TopicSequence()
        columns = self._properties.get(namespace, PropertyColumns())
        return TopicSequence.from_names(
            [
                name
                for name in columns.select(properties)
                if name not in snapshot.system and name.startswith(b"persistent:")
            ]
        )

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Apply changes at once: readers see the old version or the new one."""
        snapshot = self._snapshots.get(namespace, NamespaceSnapshot()).changed(changes)
        columns = self._properties.get(namespace, PropertyColumns())
        self._properties[namespace] = columns.changed(
            changes.properties, changes.removed, snapshot.persistent
        )
        self._snapshots[namespace] = snapshot
        self._feeds.publish(Change(namespace, snapshot.version, changes.added, changes.removed))
        return snapshot.version

    def changes(self) -> ChangeFeed:
        """Return a new feed of everything that is applied from now on, in order."""
        return self._feeds.open()
