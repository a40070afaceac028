"""The interface of topic stores, with tenants and policies; changes.py has the changes they apply.

Stores are asynchronous; snapshots are immutable; changes are numbered per namespace without a
gap, so that a reader who missed one knows to list again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

# Part of the interface: users of a store find it here.
from broker.stores.snapshots.snapshot import NamespaceSnapshot as NamespaceSnapshot  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.stores.changes import NamespaceChanges, TopicChanges
    from broker.stores.feed import ChangeFeed
    from broker.stores.snapshots.snapshot import Mode as Mode
    from broker.stores.topic_schemas import TopicSchemas
    from broker.topic_lists.listing import TopicListing
    from proto.names import NamespaceName

DEFAULT_BUNDLES = 4
"""defaultNumberOfNamespaceBundles of Pulsar 4.2."""


@dataclass(frozen=True, slots=True)
class TenantInfo:
    """A tenant (upstream: TenantInfo).

    Attributes:
        admin_roles: Those that administer it, where authorization is on; None for a tenant that was
            created without the field.
        allowed_clusters: Clusters its namespaces may lie in; empty for a tenant that came with an
            import, which may use the broker's own.
    """

    admin_roles: tuple[str, ...] | None = ()
    allowed_clusters: tuple[str, ...] = ()

    def as_json(self) -> tuple[str, str]:
        """Return roles and clusters as texts for a database."""
        return json.dumps(self.admin_roles), json.dumps(self.allowed_clusters)

    @staticmethod
    def of_json(roles: str, clusters: str) -> TenantInfo:
        """Return the tenant that ``as_json`` wrote."""
        named: list[str] | None = json.loads(roles)
        return TenantInfo(None if named is None else tuple(named), tuple(json.loads(clusters)))


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """The part of a namespace's policies that is kept (upstream: Policies).

    Attributes:
        bundles: Bundles that it is divided into (``bundles.numBundles``).
    """

    bundles: int = DEFAULT_BUNDLES


DEFAULT_POLICIES = NamespacePolicies()
"""Policies of a namespace that came with its first topic."""
NO_DOCUMENT: Mapping[str, object] = {}


class MetadataStore(Protocol):
    """A store of topics (``metadataStoreUrl``)."""

    @property
    def cached_bytes(self) -> int:
        """Bytes of the snapshots kept (floodgateSnapshotCacheMB); 0 where they are the store."""

    @property
    def schemas(self) -> TopicSchemas:
        """The schemas of topics."""

    async def open(self) -> None:
        """Make the store ready.

        Raises:
            StoreError: It cannot be opened; one sentence.
        """

    async def close(self) -> None:
        """Release files, connections and threads; applied changes stay."""

    # -- tenants and namespaces ---------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return the tenants by name, in order, with those that came with a namespace."""

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None when it does not exist."""

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; false when it exists."""

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's values; false when it does not exist."""

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant; false when it does not exist.

        Raises:
            NamespaceNotEmptyError: It has namespaces.
        """

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return the namespaces that exist, or those of a tenant, in order."""

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace, and its tenant if need be; false when it exists.

        Its policies about messages are those of the document, by key, as durably as it is itself.
        """

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None when it does not exist."""

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace with its system topics; false when it does not exist.

        Raises:
            NamespaceNotEmptyError: It holds user topics or partitioned topics.
        """

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces, each with all its topics at once; return what each held.

        Those that do not exist are left out. Of many at a time each costs little.
        """

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version of a namespace; None when it does not exist."""

    async def version(self, namespace: NamespaceName) -> int:
        """Return the newest version without reading names; 0 for a namespace that is not there."""

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate if it is known without waiting, else None."""

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return a mode's listing of ``snapshot`` if that needs no wait, else None."""

    async def select(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the user topics of a mode that have every given property (equality, AND).

        The store's index finds them without looking at other topics. Without properties it is
        the whole listing; a namespace that does not exist has none.
        """

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        """Return the properties of a topic or partitioned topic; empty without any."""

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Apply changes at once; return the namespace's new version.

        Once this returns the change is as durable as the store is, and in the feed. Conditions
        and change are one step: of two callers who require the same name to be absent, also in
        two processes that share the store, one succeeds.

        Raises:
            TopicExistsError: One of ``changes.absent`` exists.
            TopicMissingError: One of ``changes.present`` does not exist.
            TopicChangedError: ``changes.unchanged`` has changed.
            NamespaceMissingError: There is no such namespace, and none is to be created.
        """

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces, each at once and in no order, as ``apply`` does.

        What comes into a new namespace costs little beside its names, however many these are.

        Args:
            changes: Changes without conditions, each of another namespace.
        """

    def changes(self) -> ChangeFeed:
        """Return a new feed of everything that is applied from now on, in order."""

    async def has_imported(self, fingerprint: str) -> bool:
        """Tell whether a file with this content was imported as a whole."""

    async def remember_import(self, fingerprint: str) -> None:
        """Note that all of a file with this content was imported, as durably as topics."""

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the policies of namespaces and topics: values of JSON by key, by full name.

        Args:
            name: A namespace or topic, to read its policies alone.
        """

    async def set_policy(self, name: str, key: str, value: object | None) -> None:
        """Keep one policy of a namespace or topic, which need not exist; None removes it."""

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Forget all policies of some namespaces and topics."""

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Register a callback for policies that another process changed.

        It is called with the full name they are of, or with "" when they may be any.
        """

    async def next_instance(self) -> int:
        """Return how often this was asked before: each start of a broker has its own number."""

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the values that were set at run time, by key."""

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Keep a value set at run time; None removes it."""

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of the configuration by another process."""
