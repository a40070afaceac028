"""The objects and settings shared by all watched namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.watches.names.disposal import NamesDisposal
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from broker.patterns.filter import PatternFilter
    from broker.patterns.pattern import RegexImplementation
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock


@dataclass(slots=True)
class WatchTotals:
    """Counters of watches since the process started.

    Attributes:
        watchers: Open watchers.
        lagging: Watchers whose client has not received the newest version.
        updates: Updates sent, counted for each watcher.
        reconciling: Updates covering all changes missed by a watcher.
        relistings: Namespaces listed again after a missed change.
        refused: Watches refused because of floodgateTopicWatchMaxBytes.
        retries: Permits requested again.
    """

    watchers: int = 0
    lagging: int = 0
    updates: int = 0
    reconciling: int = 0
    relistings: int = 0
    refused: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class FollowingContext:
    """The objects and settings shared by all watched namespaces.

    Attributes:
        pattern_filter: Selects the names of a set's first version.
        implementation: topicsPatternRegexImplementation.
        one_by_one: See WatchProfile.
        steps: Does the long work of all namespaces in steps.
        disposal: Frees the names of unwatched sets.
    """

    store: MetadataStore
    pattern_filter: PatternFilter
    implementation: RegexImplementation
    totals: WatchTotals
    clock: Clock
    one_by_one: bool
    steps: Steps = field(default_factory=Steps)
    disposal: NamesDisposal = field(default_factory=NamesDisposal)
