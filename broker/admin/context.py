"""The parts of a broker that handlers of admin requests work with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

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
    from broker.topics.lookup_outcomes import LookupOutcomes
    from broker.topics.properties import TopicProperties
    from broker.topics.service import TopicService
    from limiter.flow.lookup_semaphore import LookupSemaphore
    from proto.names import NamespaceName
    from server.configuration.addresses import ServerUrls

T = TypeVar("T")
NO_NAMESPACE = "Namespace does not exist"


@dataclass(frozen=True, slots=True)
class AdminRules:
    """The differences between the profiles; each is as recorded of a real broker, or mended.

    Attributes:
        fails_as_upstream: 500 where upstream's server fails at what a client sent; otherwise the
            status of any other refusal.
        returns_accepted_type: JSON is answered with the parameters that the client accepts.
        skips_unreadable_properties: Parts of ``properties`` that are no ``key=value`` are left out;
            otherwise refused.
        unknown_bundle_is_empty: A listing of a bundle that does not exist is empty; otherwise
            refused.
        missing_namespace_has_bundle: Topics of a missing namespace lie in its only bundle.
        forgets_non_persistent: A namespace of non-persistent topics only is deleted with them.
        creates_used_partitions: A partition of a non-persistent topic is created by its first use.
        keeps_shown_quotas: The backlog quotas that are shown as applied to a topic become its
            namespace's own.
        accepts_no_property: A request without any property succeeds and changes nothing.
        clears_internal_backlogs: Who clears the backlog of a namespace clears that of compaction,
            too, which loses what it had not come to.
        acts_before_it_refuses: What is asked about a subscription that some partitions lack is done
            to the others, and refused then; otherwise refused before.
    """

    fails_as_upstream: bool = False
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


FLOODGATE_ADMIN = AdminRules()
PULSAR_ADMIN = AdminRules(**{field.name: True for field in fields(AdminRules)})


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The parts of a broker that handlers of admin requests work with.

    Attributes:
        lookup_places: Those of maxConcurrentLookupRequest.
        urls: Returns its addresses; nowhere to connect to before it takes clients.
        rules: The differences between the profiles.
        tenants_changed: Called when a tenant was made, changed or deleted here.
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
        """Return a namespace's topics.

        Raises:
            RestError: 404, it does not exist.
        """
        return _there(await self.store.snapshot(namespace))

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """Return a namespace's policies.

        Raises:
            RestError: 404, it does not exist.
        """
        return _there(await self.store.policies(namespace))

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self.dynamic.config

    @property
    def broker_id(self) -> str:
        """Host and web port, the name that upstream gives a broker."""
        return self.urls().web_address


def _there(found: T | None) -> T:
    if found is None:
        raise RestError(404, NO_NAMESPACE)
    return found
