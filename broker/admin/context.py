"""The broker's services that handlers of admin requests use."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

from broker.policies.policy import NO_NAMESPACE
from broker.topics.rules import no_namespace
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.admin.listing_response import ListingResponses
    from broker.configuration.config import BrokerConfig
    from broker.configuration.dynamic import DynamicConfiguration
    from broker.listing.lister import TopicLister
    from broker.messaging import Messaging
    from broker.ownership.ownership import Ownership
    from broker.policies.service import PolicyService
    from broker.schemas.registry import SchemaRegistry
    from broker.stores.store import MetadataStore, NamespacePolicies, NamespaceSnapshot
    from broker.topics.lookup import LookupOutcomes
    from broker.topics.properties import TopicProperties
    from broker.topics.service import TopicService
    from limiter.flow.lookup_semaphore import LookupSemaphore
    from proto.names import NamespaceName
    from server.configuration.addresses import ServerUrls

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AdminRules:
    """Differences between the admin REST in profile pulsar and in profile floodgate.

    Each is True for behavior recorded from a real broker, False for corrected behavior.

    Attributes:
        fails_as_upstream: Input at which upstream's server fails is answered with 500; otherwise
            with the 4xx status of a refusal.
        counts_namespaces_before: A tenant may have one namespace more than
            maxNamespacesPerTenant, and above it even an existing name is refused as too many.
        leaves_reasons_out: Changes of some policies of a missing namespace are refused without a
            reason.
        returns_accepted_type: The media type of JSON responses has the parameters in the client's
            Accept header.
        skips_unreadable_properties: Parts of the query parameter ``properties`` other than
            ``key=value`` are ignored; otherwise they are refused.
        unknown_bundle_is_empty: Listing a bundle that does not exist returns no topics; otherwise
            the request is refused.
        missing_namespace_has_bundle: The bundle of a topic is shown even if its namespace does not
            exist, as if that namespace had one bundle.
        forgets_non_persistent: A namespace with only non-persistent topics can be deleted without
            ``force``, together with these topics.
        creates_used_partitions: A partition of a non-persistent topic is created by its first use.
        keeps_shown_quotas: If a request shows the default backlog quotas as applied to a topic,
            they are stored as quotas of its namespace.
        accepts_no_property: A request without properties succeeds as a no-op.
        clears_internal_backlogs: Clearing the backlog of a namespace also clears compaction's
            backlog: compaction loses the messages.
        acts_before_it_refuses: A request about a subscription that some partitions lack changes the
            other partitions and is refused afterwards; otherwise it is refused without effect.
        misreads_excluded: A message id with ``excluded`` is the first message of a new
            subscription, and expires as if it were the next one; otherwise the subscription begins
            after it, and what is before it expires.
    """

    fails_as_upstream: bool = False
    counts_namespaces_before: bool = False
    leaves_reasons_out: bool = False
    returns_accepted_type: bool = False
    skips_unreadable_properties: bool = False
    unknown_bundle_is_empty: bool = False
    missing_namespace_has_bundle: bool = False
    forgets_non_persistent: bool = False
    creates_used_partitions: bool = False
    keeps_shown_quotas: bool = False
    accepts_no_property: bool = False
    clears_internal_backlogs: bool = False
    acts_before_it_refuses: bool = False
    misreads_excluded: bool = False


FLOODGATE_ADMIN = AdminRules()
PULSAR_ADMIN = AdminRules(**{field.name: True for field in fields(AdminRules)})


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The broker's services that handlers of admin requests use.

    Attributes:
        lookup_places: The permits of maxConcurrentLookupRequest.
        urls: Returns the broker's addresses; empty before the broker accepts clients.
        rules: The differences between the profiles.
        tenants_changed: Called when a tenant was created, changed or deleted on this broker.
    """

    store: MetadataStore
    lister: TopicLister
    topics: TopicService
    properties: TopicProperties
    message_policies: PolicyService
    messaging: Messaging
    schemas: SchemaRegistry
    dynamic: DynamicConfiguration
    listings: ListingResponses
    ownership: Ownership
    lookups: LookupOutcomes
    lookup_places: LookupSemaphore
    urls: Callable[[], ServerUrls]
    rules: AdminRules
    tenants_changed: Callable[[], None]

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot:
        """Return a snapshot of a namespace's topics.

        Raises:
            RestError: 404, the namespace does not exist.
        """
        return _there(await self.store.snapshot(namespace))

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """Return a namespace's policies.

        Raises:
            RestError: 404, the namespace does not exist.
        """
        return _there(await self.store.policies(namespace))

    async def bundles(self, namespace: NamespaceName) -> int:
        """Return the number of a namespace's bundles.

        Raises:
            RefusedError: The namespace does not exist.
        """
        policies = await self.store.policies(namespace)
        if policies is None:
            raise no_namespace()
        return policies.bundles

    @property
    def config(self) -> BrokerConfig:
        """The broker's effective configuration, including values set at run time."""
        return self.dynamic.config

    @property
    def broker_id(self) -> str:
        """The broker's name as upstream forms it: host and web port."""
        return self.urls().web_address


def _there(found: T | None) -> T:
    if found is None:
        raise RestError(404, NO_NAMESPACE)
    return found
