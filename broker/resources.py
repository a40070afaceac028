"""A short module name, ``broker.resources``, from which plug-ins import their interface (PIP-452).

The name stays stable for existing plug-ins, wherever the classes move.
"""

from broker.plugins.plugin import (
    BrokerContext,
    DefaultPulsarResourcesExtended,
    PulsarResourcesExtended,
)
from broker.topic_lists.sequence import TopicListing

__all__ = [
    "BrokerContext",
    "DefaultPulsarResourcesExtended",
    "PulsarResourcesExtended",
    "TopicListing",
]
