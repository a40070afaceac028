"""What every followed namespace works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from broker.patterns.filter import PatternFilter
    from broker.patterns.pattern import RegexImplementation
    from broker.stores.store import MetadataStore
    from broker.watches.sets.totals import WatchTotals
    from limiter.clock import Clock


@dataclass(frozen=True, slots=True)
class FollowingContext:
    """What every followed namespace works with.

    Attributes:
        pattern_filter: Makes the first version of a set.
        implementation: topicsPatternRegexImplementation.
        one_by_one: Profile pulsar: each name is an update of its own.
        steps: Takes the long work of all namespaces in turns.
    """

    store: MetadataStore
    pattern_filter: PatternFilter
    implementation: RegexImplementation
    totals: WatchTotals
    clock: Clock
    one_by_one: bool
    steps: Steps = field(default_factory=Steps)
