"""Matching of a change's names with the patterns of watched sets.

RE2 matches each name with all patterns in one pass. Patterns that require a backtracking engine are
matched with all names of the change in worker processes, ended on timeout.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.patterns.errors import InvalidPatternError
from broker.topic_lists.listing import TopicListing
from broker.topic_lists.sequence import TopicSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from broker.patterns.filter import PatternFilter
    from broker.patterns.index import PatternIndex
    from broker.watches.sets.watched_sets import WatchedSet
    from server.tasks.cooperative import Steps


class ChangeMatching:
    """The sets of each name; made by ``matching_for``."""

    def __init__(self, index: PatternIndex[WatchedSet]) -> None:
        self._index = index
        self._backtracked: dict[bytes, list[WatchedSet]] = {}

    def of(self, name: bytes) -> list[WatchedSet]:
        """Return the sets of a name."""
        return self._index.matching(name) + self._backtracked.get(name, [])

    def noting(self, watched: WatchedSet, kept: TopicListing) -> Generator[None, None, None]:
        """Record the matches of a backtracking pattern, a block in each step."""
        for sequence in kept.sequences:
            for block in sequence.blocks():
                for name in block.names():
                    self._backtracked.setdefault(name, []).append(watched)
                yield


async def matching_for(
    names: Sequence[bytes],
    index: PatternIndex[WatchedSet],
    pattern_filter: PatternFilter,
    give_up: Callable[[WatchedSet], object],
    steps: Steps,
) -> ChangeMatching:
    """Prepare the matching of a change's names; no set may be added while in use.

    Args:
        names: All names of the change.
        index: The patterns.
        pattern_filter: Evaluates patterns that require a backtracking engine.
        give_up: Called with a set whose pattern takes too long.
        steps: Does long work in steps.
    """
    await steps.take(index.compiling())
    matching = ChangeMatching(index)
    backtracking = index.backtracking
    if backtracking:
        listing = TopicListing(await asyncio.to_thread(TopicSequence.from_names, names))
        for watched in backtracking:
            try:
                kept = await pattern_filter.filter(listing, watched.pattern)
            except InvalidPatternError:
                give_up(watched)
            else:
                await steps.take(matching.noting(watched, kept))
    return matching
