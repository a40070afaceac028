"""Counters of topic list watches, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WatchTotals:
    """Counters of watches since the process started.

    Attributes:
        watchers: Watchers that are open now.
        lagging: Watchers whose client has not been sent the newest version yet.
        updates: Updates that were sent, one for each watcher.
        reconciling: Updates that cover all that a watcher missed.
        relistings: Namespaces that were listed again because a change was missed.
        refused: Watches refused because of floodgateTopicWatchMaxBytes.
        retries: Permits that had to be requested again.
    """

    watchers: int = 0
    lagging: int = 0
    updates: int = 0
    reconciling: int = 0
    relistings: int = 0
    refused: int = 0
    retries: int = 0
