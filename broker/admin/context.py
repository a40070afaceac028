"""The parts of a broker that handlers of admin requests work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.admin.listing_response import ListingResponses
    from broker.admin.rules import AdminRules
    from broker.configuration.config import BrokerConfig
    from broker.configuration.dynamic import DynamicConfiguration
    from broker.listing.lister import TopicLister
    from broker.stores.store import MetadataStore
    from broker.topics.properties import TopicProperties
    from broker.topics.service import TopicService


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The parts of a broker that handlers of admin requests work with.

    Attributes:
        service_url: Returns ``pulsar://...``, empty before the broker takes clients.
        web_service_url: Returns ``http://...``.
        rules: The differences between the profiles.
    """

    store: MetadataStore
    lister: TopicLister
    topics: TopicService
    properties: TopicProperties
    dynamic: DynamicConfiguration
    listings: ListingResponses
    service_url: Callable[[], str]
    web_service_url: Callable[[], str]
    rules: AdminRules

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self.dynamic.config

    @property
    def broker_id(self) -> str:
        """Host and web port, the name that upstream gives a broker."""
        return self.web_service_url().removeprefix("http://")
