"""The filter of listings by clients' patterns: one evaluation for all who ask the same.

What RE2 compiles is matched here, block by block, a few milliseconds at a time; what only a
backtracking engine can compile is matched by processes (``broker.patterns.backtracking``).
"""

from __future__ import annotations

import logging
import operator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from broker.patterns.backtracking import BacktrackingFilter, Piece
from broker.patterns.cache import ListingCache
from broker.patterns.path_columns import PathColumns, PathRun
from broker.patterns.pattern import (
    Backtracking,
    LinearTime,
    RegexImplementation,
    TopicsPattern,
    compile_pattern,
    compiled_before,
    pattern_length,
)
from broker.patterns.workers import PatternWorkers
from broker.topic_lists.listing import TopicListing
from broker.topic_lists.sequence import Selection, TopicSequence
from limiter.clock import LoopClock
from server.tasks.cooperative import Steps
from server.tasks.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from broker.topic_lists.block import Mask
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

TURN_SECONDS = 0.003
"""Longest turn of matching, before other connections get theirs."""
FIRST_STEP_NAMES = 2_048
"""Most names in the first step, before it is known how long they take."""
FIRST_STEP_WORK = 65_536
"""Names times the pattern's instructions in the first step. RE2 at its slowest takes about 0.1 us
for such a pair on a name of 100 B, so that the first step takes 50 ms at most, and mostly 0.2."""
MOST_STEP_NAMES = 65_536
"""Most names in a step, however fast the machine: more than a run of the shortest names has."""
LARGE_PROGRAM = 500
"""Instructions of a pattern of which it is measured what a call costs before the first name:
Arrow compiles a pattern in each, in 0.2 us an instruction, or 0.5 on a busy machine."""
_SHORT_STEP_SECONDS = 0.001
_LONG_STEP_SECONDS = 0.004
_EMPTY_PATH = pa.array([""])
_EVERYTHING: Final = object()
"""Remembered instead of a listing that a pattern keeps whole: a value must not hold its scope."""


@dataclass(frozen=True, slots=True)
class PatternRules:
    """The configuration of patterns.

    Attributes:
        enabled: enableBrokerSideSubscriptionPatternEvaluation.
        max_length: subscriptionPatternMaxLength, UTF-16 units of the raw pattern.
        implementation: topicsPatternRegexImplementation.
        share: Whether requests for the same listing and pattern share one evaluation, and its
            result while it is remembered.
        timeout_seconds: floodgatePatternTimeoutMs: how long what only a backtracking engine can
            compile may take for some names; see BacktrackingFilter.
    """

    enabled: bool
    max_length: int
    implementation: RegexImplementation
    share: bool
    timeout_seconds: float = 1.0


class PatternFilter:
    """The filter of listings by clients' patterns.

    Args:
        rules: The configuration.
        cache: Remembers results and columns; without one, nothing is remembered.
        workers: Match what only a backtracking engine can compile.
        clock: The source of time.
    """

    def __init__(
        self,
        rules: PatternRules,
        cache: ListingCache | None = None,
        workers: PatternWorkers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._rules = rules
        self._cache = cache or ListingCache(0)
        self._backtracking = BacktrackingFilter(
            workers or PatternWorkers(), clock or LoopClock(), rules.timeout_seconds
        )
        self._evaluations = SingleFlight[TopicListing]()
        self._steps = Steps(TURN_SECONDS)

    def applies_to(self, pattern: str) -> bool:
        """Tell whether the broker evaluates this pattern; otherwise the client has to."""
        if not self._rules.enabled:
            return False
        length = pattern_length(pattern)
        if length > self._rules.max_length:
            logger.info("a pattern of %d UTF-16 units is left to the client", length)
        return length <= self._rules.max_length

    async def filter(self, listing: TopicListing, pattern: str) -> TopicListing:
        """Return the topics whose name without partition and scheme matches as a whole.

        Raises:
            InvalidPatternError: The pattern cannot be compiled, or takes too long.
        """
        compiled = await self._compiled(pattern)
        if compiled.matches_all:
            return listing
        if not self._rules.share:
            return (await self._evaluate(listing, compiled))[0]
        # By its text without a domain, which a listing's pattern has and a watch's has not.
        known = self._cache.get(listing, compiled.text)
        if known is not None:
            return known if isinstance(known, TopicListing) else listing
        work = partial(self._remembered, listing, compiled)
        return await self._evaluations.join((listing, compiled.text), work)

    async def _compiled(self, pattern: str) -> TopicsPattern:
        """Return a pattern compiled; at most one new one in a turn of the event loop."""
        known = compiled_before(pattern, self._rules.implementation)
        if known is not None:
            return known
        return await self._steps.take(self._compiling(pattern))

    def _compiling(self, pattern: str) -> Generator[None, None, TopicsPattern]:
        yield from ()  # Work of one step.
        return compile_pattern(pattern, self._rules.implementation)

    async def _remembered(self, listing: TopicListing, pattern: TopicsPattern) -> TopicListing:
        kept, added_bytes = await self._evaluate(listing, pattern)
        value = kept if kept is not listing else _EVERYTHING
        self._cache.put(listing, pattern.text, value, added_bytes)
        return kept

    # -- evaluating -----------------------------------------------------------------------------

    async def _evaluate(
        self, listing: TopicListing, pattern: TopicsPattern
    ) -> tuple[TopicListing, int]:
        """Return the listing that a pattern keeps, and the bytes it adds to the one it is of."""
        selections = [Selection(sequence) for sequence in listing.sequences]
        if isinstance(pattern, Backtracking):
            pieces = (
                Piece(one, run)
                for one in selections
                for run in self._candidates(one.source, pattern)
            )
            await self._backtracking.keep(pattern, pieces, len(listing))
            works = (selection.finishing() for selection in selections)
        else:
            works = (self._filtering(selection, pattern) for selection in selections)
        kept = [await self._steps.take(work) for work in works]
        if all(map(operator.is_, kept, listing.sequences)):
            return listing, 0
        return TopicListing(*kept), sum(selection.added_bytes for selection in selections)

    def _filtering(
        self, selection: Selection, pattern: TopicsPattern
    ) -> Generator[None, None, TopicSequence]:
        """Return what is kept of one sequence; each step takes about a millisecond."""
        size = _StepSize(pattern)
        if size.is_large:
            yield
            begun = perf_counter()
            pattern.matching(_EMPTY_PATH)
            size.call_seconds = perf_counter() - begun
        for run, paths in self._candidates(selection.source, pattern):
            yield
            masks: list[Mask] = []
            start = 0
            while start < len(run):
                begun = perf_counter()
                masks.append(pattern.matching(paths.slice(start, size.names)))
                start += len(masks[-1])
                size.adapt(perf_counter() - begun)
                yield
            run.keep(selection, np.concatenate(masks))
            yield
        return (yield from selection.finishing())

    def _candidates(self, sequence: TopicSequence, pattern: TopicsPattern) -> Iterator[PathRun]:
        """Yield the blocks that may hold matches, by the pattern's literal beginning."""
        columns = PathColumns(sequence, self._cache)
        domain = sequence.domain_prefix
        if not domain or not isinstance(pattern, LinearTime):
            return columns.runs()
        return columns.runs(domain + pattern.low, domain + pattern.high)


class _StepSize:
    """The number of names matched in one call: many, but not for long.

    Attributes:
        names: That number.
        is_large: Whether the pattern is, so that ``call_seconds`` are worth to be measured.
        call_seconds: What a call costs before its first name, which fewer names make no less.
    """

    def __init__(self, pattern: TopicsPattern) -> None:
        program_size = pattern.program_size if isinstance(pattern, LinearTime) else 1
        self.names = max(1, min(FIRST_STEP_WORK // program_size, FIRST_STEP_NAMES))
        self.is_large = program_size >= LARGE_PROGRAM
        self.call_seconds = 0.0

    def adapt(self, seconds: float) -> None:
        """Adapt to the duration of the last call.

        The measure of a call may be wrong by half; that of one that was interrupted, by more: no
        call costs more than any that matched names.
        """
        self.call_seconds = min(self.call_seconds, max(seconds, 0.0))
        matching = seconds - self.call_seconds
        if matching < max(_SHORT_STEP_SECONDS, self.call_seconds / 2):
            self.names = min(8 * self.names, MOST_STEP_NAMES)
        elif matching > max(_LONG_STEP_SECONDS, self.call_seconds):
            self.names = max(1, self.names // 4)
