"""``PropertyIndex``, a listing plug-in that selects topics by their properties (PIP-452)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.plugins.plugin import DefaultPulsarResourcesExtended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.stores.store import Mode
    from broker.topic_lists.sequence import TopicListing
    from proto.names import NamespaceName


class PropertyIndex(DefaultPulsarResourcesExtended):
    """A listing plug-in that lists the topics that have every property sent by the client.

    The store's index evaluates the filter without reading unselected topics. Properties are set on
    creation, by import or by REST. A client sending a property without matching topics gets an
    empty list: consumers send *all* their properties, even unrelated properties.
    """

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing | Sequence[str]:
        """Return a namespace's topics that have all given properties, found by the store's index.

        See PulsarResourcesExtended.
        """
        return await self.store.select(namespace, mode, properties)
