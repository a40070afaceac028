"""The store ``memory:local``, whose contents are lost when the process ends."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from broker.stores.changes import (
    ChangeFeed,
    ChangeFeeds,
    NamespaceNotEmptyError,
    TopicChanges,
    TopicState,
)
from broker.stores.conditions import (
    MANY_NAMES,
    check_conditions,
    check_unchanged,
    end_of,
    feed_change,
    is_large,
    settled,
)
from broker.stores.name_locks import NameLocks, to_its_end
from broker.stores.properties import NamespaceProperties
from broker.stores.snapshots.partition_counts import sorted_in_runs
from broker.stores.store import (
    DEFAULT_POLICIES,
    NO_DOCUMENT,
    NamespacePolicies,
    NamespaceSnapshot,
    TenantInfo,
)
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing
from server.tasks.cooperative import Steps, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from broker.stores.changes import NamespaceChanges
    from broker.stores.store import Mode, StoredSchema
    from proto.names import NamespaceName

    _Before: TypeAlias = tuple[NamespaceSnapshot, NamespaceProperties]


NameT = TypeVar("NameT", bound="str | NamespaceName")


class MemoryStore:
    """A store of topics in memory: a dict of immutable namespace snapshots. See MetadataStore.

    Bound: none; memory is about the bytes of all names + 10 %.
    """

    def __init__(self) -> None:
        self._snapshots: dict[NamespaceName, NamespaceSnapshot] = {}
        self._policies: dict[NamespaceName, NamespacePolicies] = {}
        self._properties: dict[NamespaceName, NamespaceProperties] = {}
        self._tenants: dict[str, TenantInfo] = {}
        self._of_tenants: dict[str, dict[NamespaceName, None]] = {}
        self._configuration: dict[str, str] = {}
        self._instances = count()
        self._documents: dict[str, dict[str, object]] = {}
        self._imported: set[str] = set()
        self._schemas: dict[str, list[StoredSchema]] = {}
        self._feeds = ChangeFeeds()
        self._steps = Steps()
        self._locks: NameLocks[NamespaceName] = NameLocks()
        # A recreated namespace continues above its old versions.
        self._first_version = 0

    def __repr__(self) -> str:
        return f"<MemoryStore {len(self._snapshots)} namespaces>"

    @property
    def cached_bytes(self) -> int:
        """Always 0: the snapshots are the data, not cached copies."""
        return 0

    async def open(self) -> None:
        """Do nothing: a store in memory is always open."""

    async def close(self) -> None:
        """Close the feed of every reader."""
        self._feeds.close()

    # -- tenants and namespaces ---------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return all tenants in a dict by name, sorted by name."""
        kept = dict(self._tenants)
        return {name: kept[name] async for name in in_turns(await _in_order(kept))}

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if the tenant does not exist."""
        return self._tenants.get(name)

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; return False if it already exists."""
        if name in self._tenants:
            return False
        self._tenants[name] = info
        return True

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's roles and clusters; return False if there is no such tenant."""
        if name not in self._tenants:
            return False
        self._tenants[name] = info
        return True

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant that has no namespaces; return False if it does not exist."""
        if self._of_tenants.get(name):
            raise NamespaceNotEmptyError
        return self._tenants.pop(name, None) is not None

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or those of one tenant, sorted by name."""
        return await _in_order(
            self._snapshots if tenant is None else self._of_tenants.get(tenant, {})
        )

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace; return False if it already exists.

        A missing tenant is created.
        """
        async with self._locks.of(namespace):
            if namespace in self._snapshots:
                return False
            self._create(namespace, NamespaceSnapshot(self._first_version), policies)
            await self.delete_policies([str(namespace)])
            for key, value in document.items():
                await self.set_policy(str(namespace), key, value)
            return True

    def _create(
        self, namespace: NamespaceName, first: NamespaceSnapshot, policies: NamespacePolicies
    ) -> None:
        self._tenants.setdefault(namespace.tenant, TenantInfo())
        self._of_tenants.setdefault(namespace.tenant, {})[namespace] = None
        self._policies[namespace] = policies
        self._properties[namespace] = NamespaceProperties()
        self._snapshots[namespace] = first

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if the namespace does not exist."""
        return self._policies.get(namespace)

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace that has no user topics; return False if it does not exist."""
        async with self._locks.of(namespace):
            snapshot = self._snapshots.get(namespace)
            if snapshot is None:
                return False
            if not snapshot.empty:
                raise NamespaceNotEmptyError
            self._forget(namespace, snapshot)
            return True

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with all their topics; return their last snapshots."""
        found: dict[NamespaceName, NamespaceSnapshot] = {}
        async for namespace in in_turns(namespaces):
            async with self._locks.of(namespace):
                snapshot = self._snapshots.get(namespace)
                if snapshot is not None:
                    self._forget(namespace, snapshot)
                    found[namespace] = snapshot
        return found

    def _forget(self, namespace: NamespaceName, last: NamespaceSnapshot) -> None:
        prefix = f"{namespace}/"
        for topic in [name for name in self._schemas if name.startswith(prefix)]:
            del self._schemas[topic]
        del self._snapshots[namespace], self._policies[namespace], self._properties[namespace]
        del self._of_tenants[namespace.tenant][namespace]
        if not self._of_tenants[namespace.tenant]:
            del self._of_tenants[namespace.tenant]
        self._first_version = max(self._first_version, last.version + 1)
        self._feeds.publish(end_of(namespace, last))

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest snapshot of a namespace; None if the namespace does not exist."""
        return self._snapshots.get(namespace)

    async def version(self, namespace: NamespaceName) -> int:
        """Return a namespace's newest version; 0 if the namespace does not exist."""
        snapshot = self._snapshots.get(namespace)
        return snapshot.version if snapshot is not None else 0

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return the estimated heap bytes of a topic list; 0 for a missing namespace."""
        snapshot = self._snapshots.get(namespace)
        return snapshot.listing(mode).estimated_bytes if snapshot is not None else 0

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return a mode's newest list of topics; empty for a missing namespace."""
        snapshot = self._snapshots.get(namespace)
        return snapshot.listing(mode) if snapshot is not None else EMPTY_LISTING

    async def select(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the user topics of a mode, such as PERSISTENT, that have all given properties."""
        snapshot = self._snapshots.get(namespace)
        if snapshot is None:
            return EMPTY_LISTING
        if not properties:
            return snapshot.listing(mode)
        selecting = self._properties[namespace].select(snapshot, mode, properties)
        return await self._steps.take(selecting)

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        """Return a topic's or partitioned topic's properties; empty if it has none."""
        snapshot = self._snapshots.get(namespace)
        if snapshot is None:
            return {}
        return self._properties[namespace].of(snapshot, name.encode())

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Apply a change of a namespace at once: readers never see a part of it."""
        compared = changes.adds_only and namespace in self._snapshots
        if is_large(changes) or compared or namespace in self._locks:
            return await to_its_end(self._apply_locked(namespace, changes))
        return self._show(namespace, _made(*self._before(namespace, changes), changes))

    async def _apply_locked(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        async with self._locks.of(namespace):
            snapshot, properties = self._before(namespace, changes)
            made = await asyncio.to_thread(_made, snapshot, properties, changes)
            return self._show(namespace, made)

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces, which are computed together in one thread."""
        return await to_its_end(self._apply_all(changes))

    async def _apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        known: list[NamespaceSnapshot | None] = []
        before: list[_Before] = []
        async for namespace, change in in_turns(changes):
            known.append(self._snapshots.get(namespace))
            before.append(self._before(namespace, change))
        made = await asyncio.to_thread(_all_made, before, changes)
        async for place, (namespace, change) in in_turns(enumerate(changes)):
            if self._snapshots.get(namespace) is known[place] and namespace not in self._locks:
                self._show(namespace, made[place])
            else:  # A concurrent change won.
                await self._apply_locked(namespace, change)

    def _before(self, namespace: NamespaceName, changes: TopicChanges) -> _Before:
        known = self._snapshots.get(namespace)
        check_conditions(known.exists if known is not None else None, changes)
        before = known or NamespaceSnapshot(self._first_version)
        properties = self._properties.get(namespace) or NamespaceProperties()
        if changes.unchanged is not None:
            name = changes.unchanged.name
            kept = properties.of(before, name.encode())
            check_unchanged(changes, TopicState(name, before.partitioned.get(name, 0), kept))
        return before, properties

    def _show(self, namespace: NamespaceName, made: _Made) -> int:
        if namespace not in self._snapshots:
            self._create(namespace, made.before, DEFAULT_POLICIES)
        self._properties[namespace] = made.properties
        self._snapshots[namespace] = made.after
        self._feeds.publish(feed_change(namespace, made.before, made.after.version, made.changes))
        return made.after.version

    def changes(self) -> ChangeFeed:
        """Return a new feed of changes, which delivers all that are committed from now on."""
        return self._feeds.open()

    async def has_imported(self, fingerprint: str) -> bool:
        """Return True if a file with this content hash was imported completely."""
        return fingerprint in self._imported

    async def remember_import(self, fingerprint: str) -> None:
        """Record, until the process ends, that a file with this content hash was imported."""
        self._imported.add(fingerprint)

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the message policies of all namespaces and topics, or of one of them."""
        kept = self._documents
        names = kept if name is None else kept.keys() & {name}
        return {one: dict(kept[one]) for one in names}

    async def set_policy(
        self, name: str, key: str, value: object | None, before: object | None = None
    ) -> bool:
        """Replace one stored policy; return False if its value is not ``before`` any more."""
        document = self._documents.setdefault(name, {})
        found = document.get(key) == before
        if found and value is not None:
            document[key] = value
        elif found:
            document.pop(key, None)
        if not document:
            del self._documents[name]
        return found

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all message policies of the given namespaces and topics."""
        for name in names:
            self._documents.pop(name, None)

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Do nothing: no other process shares the store."""

    async def next_instance(self) -> int:
        """Return the number of earlier calls of this method."""
        return next(self._instances)

    # -- schemas ------------------------------------------------------------------------------

    async def schemas_of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic's schema, the oldest first."""
        return tuple(self._schemas.get(topic, ()))

    async def add_schema(self, topic: str, schema: StoredSchema) -> bool:
        """Add a schema version to a topic; return False if that version exists.

        Bound: SchemaRegistry limits the versions of each topic.
        """
        known = self._schemas.setdefault(topic, [])
        if schema.version != len(known):
            return False
        known.append(schema)
        return True

    async def delete_schemas(self, topic: str) -> None:
        """Delete all versions of a topic's schema."""
        self._schemas.pop(topic, None)

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the dynamic configuration: the values set at run time, by key."""
        return dict(sorted(self._configuration.items()))

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Set a value of the dynamic configuration; None removes the key."""
        if value is None:
            self._configuration.pop(key, None)
        else:
            self._configuration[key] = value

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Do nothing: no other process shares the store."""


async def _in_order(names: Collection[NameT]) -> Sequence[NameT]:
    """Return names sorted as text; many names are sorted off the event loop."""
    if len(names) <= MANY_NAMES:
        return sorted(names, key=str)
    return await asyncio.to_thread(sorted_in_runs, tuple(names))


class _Made(NamedTuple):
    before: NamespaceSnapshot
    after: NamespaceSnapshot
    properties: NamespaceProperties
    changes: TopicChanges


def _all_made(before: Sequence[_Before], changes: Sequence[NamespaceChanges]) -> list[_Made]:
    return [_made(*seen, change) for seen, (_, change) in zip(before, changes, strict=True)]


def _made(
    before: NamespaceSnapshot, properties: NamespaceProperties, changes: TopicChanges
) -> _Made:
    changes = settled(before, changes, lambda name: properties.of(before, name.encode()))
    after = before.changed(changes)
    return _Made(before, after, properties.changed(before, after, changes), changes)
