"""Versions and snapshots that a broker has of shared namespaces, and the changes it publishes.

Nothing here reads the database: the store passes what it found. Versions rise, each change is
published once, and snapshots keep step with the feed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.stores.changes import TopicChanges
from broker.stores.feed import Change, ChangeFeeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.stores.snapshots.cache import SnapshotCache
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from proto.names import NamespaceName

MAX_KNOWN_NAMESPACES = 100_000
"""Most namespaces whose version is remembered; the one unchanged for longest goes first."""
NOT_THERE = 0
"""Stands for the number of a namespace that does not exist."""


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """An entry of the database's log.

    Attributes:
        version: The namespace's version with it.
        complete: Whether its names are known; see feed.Change.
        added: Names that did not exist before.
        removed: Names that existed before.
        partitioned: Partition counts that were set; 0 for one that is gone.
    """

    version: int
    complete: bool = True
    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    partitioned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownNamespace:
    """A namespace that this broker has looked at.

    Attributes:
        id: Its number in the database; another one after it was deleted and made again. NOT_THERE
            for a namespace that does not exist.
        version: The newest one in the feed. A cached snapshot has this version.
    """

    id: int
    version: int


class NamespaceView:
    """Known namespaces, their snapshots, and the feed: changed together, in one turn.

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
        """Return the known version of a namespace; None for one that was never looked at."""
        # Once some are forgotten, any may be one of those, and may have to be listed again.
        forgotten = KnownNamespace(NOT_THERE, -1) if self._forgot_some else None
        return self._known.get(namespace, forgotten)

    def all_known(self) -> Mapping[NamespaceName, KnownNamespace]:
        """Return the known versions of all namespaces."""
        return dict(self._known)

    def name_of(self, number: int) -> NamespaceName | None:
        """Return the known namespace with a number."""
        return self._by_id.get(number)

    def show(
        self,
        namespace: NamespaceName,
        known: KnownNamespace,
        snapshot: NamespaceSnapshot | None,
        changes: Iterable[Change] = (),
    ) -> None:
        """Go on to a version: remember it, keep its snapshot or none, then publish changes."""
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
    """Return the changes to publish when a namespace goes on to another version.

    Args:
        namespace: Its name.
        known: The version published last; None for a namespace that was never looked at, of which
            nothing is published.
        newest: The version now.
        log: The changes between them, as far as they are known.
    """
    if known is None or known == newest:
        return []
    if in_sequence(known, newest, log):
        return [Change(namespace, one.version, one.added, one.removed, one.complete) for one in log]
    return [Change(namespace, max(newest.version, known.version + 1), complete=False)]


def in_sequence(known: KnownNamespace, newest: KnownNamespace, log: Sequence[LoggedChange]) -> bool:
    """Tell whether a log has all changes from one version to another."""
    versions = [change.version for change in log]
    return (
        known.id == newest.id
        and versions == list(range(known.version + 1, newest.version + 1))
        and all(change.complete for change in log)
    )


def net_changes(log: Sequence[LoggedChange]) -> TopicChanges:
    """Return several changes as one; later ones override earlier ones."""
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
