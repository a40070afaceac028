"""Metrics of the admin REST. Upstream has none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from broker.admin.listing_response import ListingResponses


class AdminMetrics(Collector):
    """The admin's metrics, read when they are scraped."""

    def __init__(self, cluster: str, listings: ListingResponses) -> None:
        self._labels = {"cluster": cluster}
        self._listings = listings

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        yield gauge(
            "floodgate_admin_listings",
            "Listings that are being written over HTTP",
            self._labels,
            self._listings.active,
        )
