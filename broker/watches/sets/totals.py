"""Plain numbers of topic list watches, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WatchTotals:
    """What watches did since the process started.

    Attributes:
        watchers: Watchers that are open now.
        lagging: Those of them that have not been told the newest version yet.
        updates: Updates that were queued, one a watcher.
        reconciling: Those of them that cover what a watcher missed.
        relistings: Namespaces that were listed again because a change was missed.
        refused: Watches refused for want of floodgateTopicWatchMaxBytes.
        retries: Permits that had to be asked for again.
    """

    watchers: int = 0
    lagging: int = 0
    updates: int = 0
    reconciling: int = 0
    relistings: int = 0
    refused: int = 0
    retries: int = 0
