"""The objects and settings that all watched namespaces share."""

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
    """The objects and settings that all watched namespaces share.

    Attributes:
        pattern_filter: Selects the names of a set's first version.
        implementation: topicsPatternRegexImplementation.
        one_by_one: See WatchProfile.
        steps: Does the long work of all namespaces in turns.
    """

    store: MetadataStore
    pattern_filter: PatternFilter
    implementation: RegexImplementation
    totals: WatchTotals
    clock: Clock
    one_by_one: bool
    steps: Steps = field(default_factory=Steps)
