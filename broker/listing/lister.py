"""Lookup of the topics for a request, in the metadata store or by the configured plug-in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.configuration.plugin_keys import UNBOUNDED, PropertyBounds, as_mapping
from broker.plugins.calls import ResourceCalls
from broker.plugins.plugin import BrokerContext, DefaultPulsarResourcesExtended, open_resources
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing, TopicSequence
from limiter.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from broker.configuration.config import BrokerConfig
    from broker.stores.store import MetadataStore, Mode
    from limiter.clock import Clock
    from proto.names import NamespaceName

NO_PROPERTIES: Mapping[str, str] = {}


class TopicLister:
    """Lists the user topics of a namespace.

    Without properties the store answers all concurrent callers from one snapshot. With properties
    the plug-in is called (PIP-452), once for equal concurrent requests.

    Args:
        store: The metadata store, which contains the topics.
        calls: Calls the plug-in; None for the default plug-in, which ignores properties.
        bounds: Limits on the number and size of a client's properties.

    Attributes:
        in_use: Profile pulsar: returns the full names of a namespace's non-persistent topics with
            producers or subscriptions, the only non-persistent topics listed by a real broker
            (recorded). None: all are listed.

    Source: upstream NamespaceService.getListOfUserTopicsByProperties. A missing namespace is empty.
    Differs: upstream's key of concurrent calls joins the properties as text, so that {a: "1|b=2"}
    and {a: "1", b: "2"} share a call.
    """

    def __init__(
        self,
        store: MetadataStore,
        calls: ResourceCalls | None = None,
        bounds: PropertyBounds = UNBOUNDED,
    ) -> None:
        self._store = store
        self.calls = calls
        self.bounds = bounds
        self.in_use: Callable[[NamespaceName], Sequence[bytes]] | None = None
        self._flights = SingleFlight[TopicListing]()

    @property
    def filters(self) -> bool:
        """True if a plug-in selects topics by a client's properties."""
        return self.calls is not None

    def properties_of(self, request: pb.CommandGetTopicsOfNamespace) -> Mapping[str, str]:
        """Return the properties by which a request selects topics; none without a plug-in.

        Raises:
            TooManyPropertiesError: The request has too many properties, even if no plug-in reads
                them.
        """
        properties: Sequence[pb.KeyValue] = request.properties
        if not properties:
            return NO_PROPERTIES
        self.bounds.check_number(len(properties))
        by_key = as_mapping(properties)
        self.bounds.check(by_key)
        return by_key if self.filters else NO_PROPERTIES

    def known_bytes(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> int | None:
        """Return the heap bytes of a topic list; None if they cannot be determined without waiting.

        The size of a plug-in's list is unknown, because the namespace's size does not determine it.
        """
        if properties and self.filters:
            return None
        return self._store.estimated_bytes(namespace, mode)

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return a namespace's topic list of a mode; None if that is impossible without waiting."""
        return self._store.listing_at_once(namespace, mode)

    async def list_topics(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> TopicListing:
        """Return a namespace's topics of a mode, with each partition as a separate topic.

        System topics are left out.

        Raises:
            StoreError: The store cannot be read.
            ResourcesError: The plug-in failed.
        """
        if properties and self.calls is not None:
            # Changes acknowledged before the request are in its list: a request joins only a call
            # that began with the namespace's current version.
            version = await self._store.version(namespace)
            key = (namespace, mode, frozenset(properties.items()), version)
            work = partial(self.calls.list_topics, namespace, mode, properties)
            return await self._flights.join(key, work)
        snapshot = await self._store.snapshot(namespace)
        if snapshot is None:
            return EMPTY_LISTING
        if self.in_use is None or mode == pb.CommandGetTopicsOfNamespace.PERSISTENT:
            return snapshot.listing(mode)
        used = TopicSequence.from_names(self.in_use(namespace))
        others = snapshot.listing(mode).sequences[1:]
        return TopicListing(used, *others)


@asynccontextmanager
async def open_lister(
    store: MetadataStore, config: BrokerConfig, clock: Clock
) -> AsyncIterator[TopicLister]:
    """Open a lister with the configured plug-in, which is closed when the block ends.

    Raises:
        StartError: The plug-in cannot be used; the text is one sentence.
    """
    name, timeout = config.pulsar_resources_extended_class_name, config.resources_timeout_seconds
    async with open_resources(name, BrokerContext(store, config), timeout, clock) as resources:
        calls: ResourceCalls | None = None
        if type(resources) is not DefaultPulsarResourcesExtended:
            calls = ResourceCalls(resources, name, timeout, clock)
        yield TopicLister(store, calls, config.listing_properties)
