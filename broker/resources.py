"""The interface of listing plug-ins (PIP-452) under the short name that plug-ins import.

Names that users have written stay, wherever the classes stand.
"""

from broker.plugins.plugin import (
    BrokerContext,
    DefaultPulsarResourcesExtended,
    PulsarResourcesExtended,
)
from broker.topic_lists.listing import TopicListing

__all__ = [
    "BrokerContext",
    "DefaultPulsarResourcesExtended",
    "PulsarResourcesExtended",
    "TopicListing",
]
