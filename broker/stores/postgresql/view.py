"""What a broker knows of shared namespaces (versions, snapshots), and which changes to publish.

The module never reads the database: the store passes the results of reads. Versions rise, each
change is published once, and snapshots keep step with the feed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.stores.changes import Change, ChangeFeeds, TopicChanges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.stores.cached_store import SnapshotCache
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from proto.names import NamespaceName

MAX_KNOWN_NAMESPACES = 100_000
"""Most namespaces with a remembered version; the one unchanged for longest is evicted first."""
NOT_THERE = 0
"""Number of a missing namespace."""


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change of a namespace, as an entry of the database's log of changes.

    Attributes:
        version: The namespace's version with the change.
        complete: Whether the names are known; see changes.Change.
        added: Newly created names.
        removed: Deleted names.
        partitioned: Partition counts set; 0 for a removed partitioned topic.
    """

    version: int
    complete: bool = True
    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    partitioned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownNamespace:
    """The database number and the version of a namespace, as last read by this broker.

    Attributes:
        id: Number in the database, different after deletion and recreation. NOT_THERE for a missing
            namespace.
        version: The newest version in the feed, and the version of a cached snapshot.
    """

    id: int
    version: int


class NamespaceView:
    """What this broker knows of namespaces: versions, cached snapshots, published changes.

    All are updated together in one event-loop iteration.

    Bound: MAX_KNOWN_NAMESPACES beside the cache's own.
    """

    def __init__(self, cache: SnapshotCache, feeds: ChangeFeeds) -> None:
        self._cache = cache
        self._feeds = feeds
        self._known: OrderedDict[NamespaceName, KnownNamespace] = OrderedDict()
        self._by_id: dict[int, NamespaceName] = {}
        self._forgot_some = False

    def __len__(self) -> int:
        return len(self._known)

    def known(self, namespace: NamespaceName) -> KnownNamespace | None:
        """Return the last known version of a namespace; None if this broker never read it."""
        # After an eviction, a namespace without an entry may have had one: its readers must list
        # again.
        forgotten = KnownNamespace(NOT_THERE, -1) if self._forgot_some else None
        return self._known.get(namespace, forgotten)

    def all_known(self) -> Mapping[NamespaceName, KnownNamespace]:
        """Return the last known version of every namespace that this broker has read."""
        return dict(self._known)

    def name_of(self, number: int) -> NamespaceName | None:
        """Return the name of the namespace with a database number; None if it was never read."""
        return self._by_id.get(number)

    def show(
        self,
        namespace: NamespaceName,
        known: KnownNamespace,
        snapshot: NamespaceSnapshot | None,
        changes: Iterable[Change] = (),
    ) -> None:
        """Record a namespace's new version and snapshot, and publish its changes.

        Without a snapshot, the cached one is dropped.
        """
        self._forget(namespace)
        self._known[namespace] = known
        if known.id != NOT_THERE:
            self._by_id[known.id] = namespace
        while len(self._known) > MAX_KNOWN_NAMESPACES:
            self._forgot_some = True
            self._forget(next(iter(self._known)))
        if snapshot is not None:
            self._cache.keep(namespace, snapshot)
        for change in changes:
            self._feeds.publish(change)

    def _forget(self, namespace: NamespaceName) -> None:
        known = self._known.pop(namespace, None)
        if known is not None:
            self._by_id.pop(known.id, None)
        self._cache.forget(namespace)


def changes_to_publish(
    namespace: NamespaceName,
    known: KnownNamespace | None,
    newest: KnownNamespace,
    log: Sequence[LoggedChange],
) -> list[Change]:
    """Return the changes to publish when a broker learns of a namespace's newer version.

    Args:
        namespace: Name of the namespace.
        known: The last published version; None for a namespace never read, with no change to
            publish.
        newest: The current version.
        log: The known changes between both versions.
    """
    if known is None or known == newest:
        return []
    if in_sequence(known, newest, log):
        return [Change(namespace, one.version, one.added, one.removed, one.complete) for one in log]
    return [Change(namespace, max(newest.version, known.version + 1), complete=False)]


def in_sequence(known: KnownNamespace, newest: KnownNamespace, log: Sequence[LoggedChange]) -> bool:
    """Return True if a log has every change from one version of a namespace to a newer one."""
    versions = [change.version for change in log]
    return (
        known.id == newest.id
        and versions == list(range(known.version + 1, newest.version + 1))
        and all(change.complete for change in log)
    )


def net_changes(log: Sequence[LoggedChange]) -> TopicChanges:
    """Return logged changes merged into one change, in which later ones override earlier ones."""
    names: dict[bytes, bool] = {}
    partitioned: dict[str, int] = {}
    for change in log:
        names.update(dict.fromkeys(change.removed, False))
        names.update(dict.fromkeys(change.added, True))
        partitioned.update(change.partitioned)
    return TopicChanges(
        [name for name, there in names.items() if there],
        [name for name, there in names.items() if not there],
        partitioned,
    )
