"""The listing plug-in ``broker.property_index:PropertyIndex``: topics by their own properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.plugins.plugin import DefaultPulsarResourcesExtended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.stores.store import Mode
    from broker.topic_lists.listing import TopicListing
    from proto.names import NamespaceName


class PropertyIndex(DefaultPulsarResourcesExtended):
    """The plug-in that lists the topics with every property the client sends: equality, AND.

    The filter is pushed down to the store, whose index decides: what is not selected is not
    looked at, neither in the store nor here. Properties of topics are set when they are created,
    by import or by REST. A client that sends a property no topic has gets an empty list: consumers
    send *all* their properties, also those that are not meant for this.
    """

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing | Sequence[str]:
        """Return the topics that the store's index selects; see PulsarResourcesExtended."""
        return await self.store.select(namespace, mode, properties)
