"""Objects, settings and counters that all watches of a broker share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.watches.names.sorted_names import NamesDisposal
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from broker.configuration.config import WatchSettings
    from broker.listing.estimates import ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.listing.rules import AnswerRules
    from broker.patterns.filter import PatternFilter
    from broker.stores.store import MetadataStore
    from broker.watches.rules import WatchProfile
    from limiter.clock import Clock
    from limiter.memory.response_memory import ResponseMemory


@dataclass(slots=True)
class WatchTotals:
    """Numbers of a broker's watches, updates and retries, for the metrics.

    Attributes:
        watchers: Open watchers.
        lagging: Watchers whose client has not received the newest version.
        updates: Updates sent, counted for each watcher.
        reconciling: Updates with several changes that a client had missed.
        relistings: Namespaces listed again after a missed change.
        refused: Watches refused because of floodgateTopicWatchMaxBytes.
        retries: Refused requests for memory that were repeated.
    """

    watchers: int = 0
    lagging: int = 0
    updates: int = 0
    reconciling: int = 0
    relistings: int = 0
    refused: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class WatchContext:
    """The objects of the broker that its watches use.

    Attributes:
        answers: How responses are built, the same as for topic lists.
        max_update_bytes: Largest sum of the names of one update.
        steps: Does the long work of all namespaces in steps.
        disposal: Frees the names of unwatched sets.
    """

    store: MetadataStore
    lister: TopicLister
    estimates: ListingEstimates
    pattern_filter: PatternFilter
    memory: ResponseMemory
    clock: Clock
    answers: AnswerRules
    profile: WatchProfile
    settings: WatchSettings
    max_update_bytes: int
    totals: WatchTotals = field(default_factory=WatchTotals)
    steps: Steps = field(default_factory=Steps)
    disposal: NamesDisposal = field(default_factory=NamesDisposal)
