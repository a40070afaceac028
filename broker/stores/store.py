"""The interface of a store of metadata: topics, namespaces, tenants, policies and schemas.

changes.py defines the changes of topics.

Stores are asynchronous; snapshots are immutable; changes are numbered per namespace without a gap,
so that a reader can detect a missed change and list again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from broker.stores.snapshots.snapshot import NamespaceSnapshot as NamespaceSnapshot  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.stores.changes import ChangeFeed, NamespaceChanges, TopicChanges
    from broker.stores.snapshots.snapshot import Mode as Mode
    from broker.topic_lists.sequence import TopicListing
    from proto.names import NamespaceName

# Re-exported as part of the interface.


DEFAULT_BUNDLES = 4
"""defaultNumberOfNamespaceBundles of Pulsar 4.2."""


@dataclass(frozen=True, slots=True)
class TenantInfo:
    """A tenant's administrator roles and allowed clusters (Pulsar's TenantInfo).

    Attributes:
        admin_roles: Administrators, with authorization on; None for a tenant created without the
            field.
        allowed_clusters: Clusters for the tenant's namespaces; empty for an imported tenant, which
            may use the broker's own cluster.
    """

    admin_roles: tuple[str, ...] | None = ()
    allowed_clusters: tuple[str, ...] = ()

    def as_json(self) -> tuple[str, str]:
        """Return the roles and the clusters as JSON texts for a database."""
        return json.dumps(self.admin_roles), json.dumps(self.allowed_clusters)

    @staticmethod
    def of_json(roles: str, clusters: str) -> TenantInfo:
        """Create the tenant from JSON texts written by ``as_json``."""
        named: list[str] | None = json.loads(roles)
        return TenantInfo(None if named is None else tuple(named), tuple(json.loads(clusters)))


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """Those of a namespace's policies that have columns in the store (Pulsar's Policies).

    Attributes:
        bundles: Number of bundles (``bundles.numBundles``).
    """

    bundles: int = DEFAULT_BUNDLES


DEFAULT_POLICIES = NamespacePolicies()
"""Policies of a namespace created with its first topic."""
NO_DOCUMENT: Mapping[str, object] = {}


class MetadataStore(Protocol):
    """The interface of a store of topics and other metadata, chosen by ``metadataStoreUrl``."""

    @property
    def cached_bytes(self) -> int:
        """Total size of the cached snapshots in bytes (floodgateSnapshotCacheMB).

        0 for a store in memory.
        """

    async def open(self) -> None:
        """Open the store's file or its database connections.

        Raises:
            StoreError: The store cannot be opened; one sentence.
        """

    async def close(self) -> None:
        """Release the store's files, connections and threads; committed changes are kept."""

    # -- tenants and namespaces ---------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return all tenants in a dict by name, sorted by name.

        Tenants created together with a namespace are included.
        """

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if the tenant does not exist."""

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; return False if it already exists."""

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's roles and clusters; return False if there is no such tenant."""

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant that has no namespaces; return False if it does not exist.

        Raises:
            NamespaceNotEmptyError: The tenant has namespaces.
        """

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or those of one tenant, sorted by name."""

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace; return False if it already exists.

        A missing tenant is created.

        The document holds the namespace's message policies by key, stored with the same durability.
        """

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if the namespace does not exist."""

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace and its system topics; return False if it does not exist.

        Raises:
            NamespaceNotEmptyError: The namespace holds user topics or partitioned topics.
        """

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with all their topics; return their last snapshots.

        Missing namespaces are left out. Bulk deletion is cheap for each namespace.
        """

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest snapshot of a namespace; None if the namespace does not exist."""

    async def version(self, namespace: NamespaceName) -> int:
        """Return a namespace's newest version; 0 if the namespace does not exist.

        The topics are not read.
        """

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return the estimated heap bytes of a topic list; None if this would require waiting."""

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return a mode's newest list of topics; None if this would require waiting."""

    async def select(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the user topics of a mode, such as PERSISTENT, that have all given properties.

        The store's index finds the topics without a scan. Without properties the result is the
        whole list of topics; for a missing namespace, an empty one.
        """

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        """Return a topic's or partitioned topic's properties; empty if it has none."""

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Apply a change of a namespace, all or nothing; return the namespace's new version.

        On return the change is in the feed, and as durable as the store is. Conditions and change
        are one step: of two callers requiring the same name to be absent, even in two processes
        sharing the store, one succeeds.

        Raises:
            TopicExistsError: A name of ``changes.absent`` exists.
            TopicMissingError: A name of ``changes.present`` does not exist.
            TopicChangedError: ``changes.unchanged`` has changed.
            NamespaceMissingError: The namespace is missing and must not be created.
        """

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces, in any order, each as ``apply`` does.

        An addition to a new namespace costs little beside its names, however many.

        Args:
            changes: Changes without conditions, each of a different namespace.
        """

    def changes(self) -> ChangeFeed:
        """Return a new feed of changes, which delivers all that are committed from now on."""

    async def has_imported(self, fingerprint: str) -> bool:
        """Return True if a file with this content hash was imported completely."""

    async def remember_import(self, fingerprint: str) -> None:
        """Record that a file with this content hash was imported completely.

        The record is as durable as topics.
        """

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the message policies of namespaces and topics, by full name and policy key.

        Args:
            name: A namespace or topic, to read only its policies.
        """

    async def set_policy(
        self, name: str, key: str, value: object | None, before: object | None = None
    ) -> bool:
        """Replace one message policy of a namespace or topic, even if neither exists.

        Return False, without a change, if the stored value is not ``before``. None stands for no
        policy; ``before`` and the new value differ.
        """

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all message policies of the given namespaces and topics."""

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Register a callback, called when another process changed message policies.

        The argument is the full name of the namespace or topic; "" stands for any name.
        """

    async def next_instance(self) -> int:
        """Return the number of earlier calls of this method.

        So each start of a broker gets a number of its own.
        """

    # -- schemas, by topic name tenant/namespace/topic ----------------------------------------

    async def schemas_of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic's schema, the oldest first; empty without a schema.

        Deleting a namespace deletes its schemas. Topics without messages may have schemas.
        """

    async def add_schema(self, topic: str, schema: StoredSchema) -> bool:
        """Add a schema version to a topic; return False if another caller added that version."""

    async def delete_schemas(self, topic: str) -> None:
        """Delete all versions of a topic's schema; numbering restarts at 0."""

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the dynamic configuration: the values set at run time, by key."""

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Set a value of the dynamic configuration; None removes the key."""

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Register a callback, called when another process changed the dynamic configuration."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a topic's schema, as the store keeps it.

    Attributes:
        version: 0, 1, 2... within the topic, deleted versions included.
        kind: Type in the REST API's spelling; "AVRO".
        data: The definition; empty for most kinds.
        properties: Properties set by the client.
        stored_at: In ms since 1970.
        deleted: True for a deletion mark: earlier versions are no longer effective.
    """

    version: int
    kind: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    stored_at: int = 0
    deleted: bool = False

    @property
    def size_bytes(self) -> int:
        """Approximate size of the schema: bytes of its data plus characters of its properties."""
        texts = (text for pair in self.properties.items() for text in pair)
        return len(self.data) + sum(map(len, texts))

    def as_row(self) -> tuple[int, str, bytes, str, int, bool]:
        """Return the schema as values of a database row."""
        properties = json.dumps(dict(self.properties))
        return self.version, self.kind, self.data, properties, self.stored_at, self.deleted

    @staticmethod
    def of_row(
        version: int, kind: str, data: bytes, properties: str, stored_at: int, deleted: int
    ) -> StoredSchema:
        """Create the schema from a database row that ``as_row`` wrote."""
        found = json.loads(properties)
        return StoredSchema(version, kind, data, found, stored_at, bool(deleted))


def schema_key(topic: str) -> tuple[str, str]:
    """Return namespace and local name of a topic's name ``tenant/namespace/topic``."""
    tenant, namespace, name = topic.split("/", 2)
    return f"{tenant}/{namespace}", name
