"""The filter of topic lists by clients' patterns; equal requests share one evaluation.

RE2 patterns are matched here, block by block, a few milliseconds at a time; patterns that require a
backtracking engine are matched by processes (``broker.patterns.backtracking``).
"""

from __future__ import annotations

import logging
import operator
from functools import partial
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Final

from broker.columns import HAS_COLUMNS
from broker.patterns.backtracking import BacktrackingFilter, PatternWorkers, Piece
from broker.patterns.cache import ListingCache
from broker.patterns.pattern import (
    Backtracking,
    LinearTime,
    MatchAll,
    RegexImplementation,
    TopicsPattern,
    compile_pattern,
    compiled_before,
    pattern_length,
)
from broker.topic_lists.sequence import Selection, TopicListing, TopicSequence
from limiter.clock import LoopClock
from limiter.single_flight import SingleFlight
from server.configuration.settings import Key, Read, Settings, milliseconds
from server.tasks.cooperative import Steps

if TYPE_CHECKING or HAS_COLUMNS:
    from broker.patterns.path_columns import PathColumns as PathsOf
else:
    from broker.patterns.plain_paths import PlainPaths as PathsOf

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import TypeAlias

    from broker.patterns.plain_paths import PathRun
    from broker.topic_lists.block import Mask
    from limiter.clock import Clock

    _Evaluated: TypeAlias = LinearTime | Backtracking

logger = logging.getLogger(__name__)

TURN_SECONDS = 0.003
"""Longest matching of names in one event-loop iteration, before other connections are served."""
FIRST_STEP_NAMES = 2_048
"""Most names in the first step, while the speed is unknown."""
FIRST_STEP_WORK = 65_536
"""Most names, multiplied by the pattern's instructions, in the first step. RE2 at its slowest takes
about 0.1 us for such a pair on a name of 100 B: the first step takes 50 ms at most, and mostly 0.2.
"""
MOST_STEP_NAMES = 65_536
"""Most names in a step on any machine: more than a run of the shortest names has."""
LARGE_PROGRAM = 500
"""Instructions from which a call's fixed cost is measured: Arrow compiles the pattern in each call,
in 0.2 us an instruction, or 0.5 on a busy machine.
"""
_SHORT_STEP_SECONDS = 0.001
_LONG_STEP_SECONDS = 0.004
_EVERYTHING: Final = object()
"""Cached instead of a result when all names match: a value must not hold its scope."""


class PatternRules(Settings):
    """The settings of topic patterns, for topic-list requests and for watches."""

    enabled: bool = Key("enableBrokerSideSubscriptionPatternEvaluation")
    max_length: int = Key("subscriptionPatternMaxLength")
    """Most UTF-16 units of the raw pattern."""
    implementation: RegexImplementation = Key(
        "topicsPatternRegexImplementation", RegexImplementation
    )
    share: bool = Read(lambda checked: checked.text("floodgateResponseBuffers") == "shared")
    """Requests for the same listing and pattern share one evaluation and its cached result."""
    timeout_seconds: float = Key("floodgatePatternTimeoutMs", milliseconds)
    """Time limit of a backtracking engine for 100,000 names; see BacktrackingFilter."""


class PatternFilter:
    """Filters topic lists by clients' patterns.

    Args:
        rules: The configuration.
        cache: Cache of results and columns; None for no caching.
        workers: Processes for patterns that require a backtracking engine.
        clock: Time source.

    Attributes:
        rules: The configuration.
    """

    def __init__(
        self,
        rules: PatternRules,
        cache: ListingCache | None = None,
        workers: PatternWorkers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.rules = rules
        self._cache = cache or ListingCache(0)
        self._backtracking = BacktrackingFilter(
            workers or PatternWorkers(), clock or LoopClock(), rules.timeout_seconds
        )
        self._evaluations = SingleFlight[TopicListing]()
        self._steps = Steps(TURN_SECONDS)

    def applies_to(self, pattern: str) -> bool:
        """Return True if the broker evaluates a pattern, False if it leaves that to the client."""
        if not self.rules.enabled:
            return False
        length = pattern_length(pattern)
        if length > self.rules.max_length:
            logger.info("a pattern of %d UTF-16 units is left to the client", length)
        return length <= self.rules.max_length

    async def filter(self, listing: TopicListing, pattern: str) -> TopicListing:
        """Return the topics of a list that a pattern matches.

        A match covers the whole name without partition suffix and domain.

        Raises:
            InvalidPatternError: The pattern cannot be compiled, or takes too long.
        """
        compiled = await self._compiled(pattern)
        if isinstance(compiled, MatchAll):
            return listing
        if not self.rules.share:
            return (await self._evaluate(listing, compiled))[0]
        # Keyed by the text without a domain: present in a listing's pattern, absent in a watch's.
        known = self._cache.get(listing, compiled.text)
        if known is not None:
            return known if isinstance(known, TopicListing) else listing
        work = partial(self._remembered, listing, compiled)
        return await self._evaluations.join((listing, compiled.text), work)

    async def _compiled(self, pattern: str) -> TopicsPattern:
        """Return a compiled pattern; compile at most one pattern per event-loop iteration."""
        known = compiled_before(pattern, self.rules.implementation)
        if known is not None:
            return known
        return await self._steps.take(self._compiling(pattern))

    def _compiling(self, pattern: str) -> Generator[None, None, TopicsPattern]:
        yield from ()  # Work of one step.
        return compile_pattern(pattern, self.rules.implementation)

    async def _remembered(self, listing: TopicListing, pattern: _Evaluated) -> TopicListing:
        kept, added_bytes = await self._evaluate(listing, pattern)
        value = kept if kept is not listing else _EVERYTHING
        self._cache.put(listing, pattern.text, value, added_bytes)
        return kept

    # -- evaluating -----------------------------------------------------------------------------

    async def _evaluate(
        self, listing: TopicListing, pattern: _Evaluated
    ) -> tuple[TopicListing, int]:
        """Return the filtered list, and the number of bytes it needs beside the full list."""
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
        self, selection: Selection, pattern: LinearTime
    ) -> Generator[None, None, TopicSequence]:
        """Return the matching names of a sequence; a generator that yields every 1 ms or so."""
        size = _StepSize(pattern)
        if size.is_large:
            yield
            for _, paths in islice(self._candidates(selection.source, pattern), 1):
                begun = perf_counter()
                pattern.matching(paths[:1])  # the first match builds the program
                size.call_seconds = perf_counter() - begun
        for run, paths in self._candidates(selection.source, pattern):
            yield
            masks: list[Mask] = []
            start = 0
            while start < len(run):
                begun = perf_counter()
                masks.append(pattern.matching(paths[start : start + size.names]))
                start += len(masks[-1])
                size.adapt(perf_counter() - begun)
                yield
            run.keep(selection, b"".join(masks))
            yield
        return (yield from selection.finishing())

    def _candidates(self, sequence: TopicSequence, pattern: _Evaluated) -> Iterator[PathRun]:
        """Yield the runs of names that may match, as they can have the pattern's literal prefix."""
        columns = PathsOf(sequence, self._cache)
        domain = sequence.domain_prefix
        if not domain or not isinstance(pattern, LinearTime):
            return columns.runs()
        return columns.runs(domain + pattern.low, domain + pattern.high)


class _StepSize:
    """The number of names to match per call, adjusted so that a call takes about 1 ms.

    Attributes:
        names: Names in a call.
        is_large: Whether the pattern is large enough to measure ``call_seconds``.
        call_seconds: Fixed cost of a call, for any number of names.
    """

    def __init__(self, pattern: LinearTime) -> None:
        self.names = max(1, min(FIRST_STEP_WORK // pattern.program_size, FIRST_STEP_NAMES))
        self.is_large = pattern.program_size >= LARGE_PROGRAM
        self.call_seconds = 0.0

    def adapt(self, seconds: float) -> None:
        """Adjust the number of names per call to the last call's duration in seconds.

        A measured fixed cost may be wrong by half, and by more after an interruption: the cost
        never exceeds the duration of a call with names.
        """
        self.call_seconds = min(self.call_seconds, max(seconds, 0.0))
        matching = seconds - self.call_seconds
        if matching < max(_SHORT_STEP_SECONDS, self.call_seconds / 2):
            self.names = min(8 * self.names, MOST_STEP_NAMES)
        elif matching > max(_LONG_STEP_SECONDS, self.call_seconds):
            self.names = max(1, self.names // 4)
