"""Metrics of topic list watches. Upstream has none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from broker.watches.service import TopicListService


class WatchMetrics(Collector):
    """The watches' metrics, read when they are scraped."""

    def __init__(self, cluster: str, watches: TopicListService) -> None:
        self._labels = {"cluster": cluster}
        self._watches = watches

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        watches, totals = self._watches.registry, self._watches.totals
        for name, documentation, value in (
            ("topic_watchers", "Topic list watchers that are open", totals.watchers),
            ("topic_watch_sets", "Different sets that they watch", watches.sets),
            ("topic_watch_bytes", "Memory of what is watched, about", watches.held_bytes),
            ("topic_watch_limit_bytes", "Its limit; 0 is unlimited", watches.max_bytes),
            ("topic_watchers_lagging", "Watchers that are behind", totals.lagging),
        ):
            yield gauge(f"floodgate_{name}", documentation, self._labels, value)
        for name, documentation, value in (
            ("updates", "Updates queued for watchers", totals.updates),
            ("reconciling_updates", "Those that cover several changes", totals.reconciling),
            ("relistings", "Listings of a namespace after a missed change", totals.relistings),
            ("refused", "Watches refused for want of memory", totals.refused),
            ("retries", "Permits asked for again", totals.retries),
        ):
            yield counter(f"floodgate_topic_watch_{name}", documentation, self._labels, value)
