"""Finds the topics a request asks for: lists a namespace, then applies the client's pattern."""

from __future__ import annotations

import asyncio
import logging
import operator
from itertools import islice
from typing import TYPE_CHECKING

from limiter.clock import Clock, LoopClock, deadline
from proto.patterns import (
    InvalidPatternError,
    RegexImplementation,
    TopicsPattern,
    compile_pattern,
)
from proto.topic_blocks import Block, Selection, TopicSequence
from proto.topic_listing import EMPTY_LISTING, TopicListing

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

    from broker.stores.store import MetadataStore, Mode
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

BLOCKS_PER_TURN = 4
"""Blocks filtered (about 1 ms each) before other connections get their turn."""
BACKTRACKING_SECONDS = 1.0
"""How long a pattern that RE2 cannot compile may take on one listing."""
NAMES_PER_THREAD_CALL = 16
"""Names a thread matches at a time: what it may still do after the time is up."""


class TopicLister:
    """Lists the user topics of a namespace.

    Source: upstream NamespaceService.getListOfUserTopics. A missing namespace is empty. The
    stores answer concurrent callers from one snapshot, so there is nothing to single-flight.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def known_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate if the store knows it without waiting."""
        return self._store.estimated_bytes(namespace, mode)

    async def list_topics(self, namespace: NamespaceName, mode: Mode) -> TopicListing:
        """Return the topics of a mode, partitions one by one, system topics left out."""
        snapshot = await self._store.snapshot(namespace)
        return snapshot.listing(mode) if snapshot is not None else EMPTY_LISTING


class PatternFilter:
    """Applies clients' patterns to listings.

    Args:
        enabled: enableBrokerSideSubscriptionPatternEvaluation.
        max_length: subscriptionPatternMaxLength, characters of the raw pattern.
        implementation: topicsPatternRegexImplementation.
        share: Whether requests for the same listing and pattern share one evaluation.
        clock: Where time comes from.
    """

    def __init__(
        self,
        *,
        enabled: bool,
        max_length: int,
        implementation: RegexImplementation,
        share: bool,
        clock: Clock | None = None,
    ) -> None:
        self._clock: Clock = clock or LoopClock()
        self._enabled = enabled
        self._max_length = max_length
        self._implementation = implementation
        self._share = share
        self._running: dict[tuple[TopicListing, str], _Evaluation] = {}
        # One step at a time of all evaluations, in the order of asking: however many are under
        # way, other connections wait for one step only.
        self._step = asyncio.Lock()

    def applies_to(self, pattern: str) -> bool:
        """Tell whether the broker evaluates this pattern; otherwise the client has to."""
        if self._enabled and len(pattern) > self._max_length:
            logger.info("a pattern of %d characters is left to the client", len(pattern))
        return self._enabled and len(pattern) <= self._max_length

    async def filter(self, listing: TopicListing, pattern: str) -> TopicListing:
        """Return the topics whose name without partition and scheme matches as a whole.

        Raises:
            InvalidPatternError: The pattern cannot be compiled, or takes too long.
        """
        compiled = compile_pattern(pattern, self._implementation)
        if not self._share:
            return await self._evaluate(listing, compiled)
        key = (listing, pattern)
        evaluation = self._running.get(key)
        if evaluation is None:
            work = self._evaluate(listing, compiled)
            evaluation = self._running[key] = _Evaluation(work)
            evaluation.task.add_done_callback(lambda _: self._forget(key, evaluation))
        evaluation.waiting += 1
        try:
            # A requester that leaves must not take the result from the others.
            return await asyncio.shield(evaluation.task)
        finally:
            evaluation.waiting -= 1
            if not evaluation.waiting:
                self._forget(key, evaluation)
                evaluation.task.cancel()

    async def _evaluate(self, listing: TopicListing, pattern: TopicsPattern) -> TopicListing:
        if pattern.linear:
            return await self._filtered(listing, pattern)
        try:
            async with deadline(self._clock, BACKTRACKING_SECONDS):
                return await self._filtered(listing, pattern)
        except TimeoutError:
            raise InvalidPatternError(
                f"the pattern takes more than {BACKTRACKING_SECONDS:g} s on {len(listing)} topics; "
                "write it without look-around and back-references"
            ) from None

    def _forget(self, key: tuple[TopicListing, str], evaluation: _Evaluation) -> None:
        """Let nobody join an evaluation that has ended, or that nobody waits for."""
        if self._running.get(key) is evaluation:
            del self._running[key]
        if evaluation.task.done() and not evaluation.task.cancelled():
            evaluation.task.exception()  # told to those who waited, if any were left

    async def _filtered(self, listing: TopicListing, pattern: TopicsPattern) -> TopicListing:
        kept = [await self._filtered_sequence(one, pattern) for one in listing.sequences]
        same = all(map(operator.is_, kept, listing.sequences))
        return listing if same else TopicListing(*kept)

    async def _filtered_sequence(
        self, sequence: TopicSequence, pattern: TopicsPattern
    ) -> TopicSequence:
        selection = Selection(sequence)
        for blocks in _batches(sequence.blocks(), BLOCKS_PER_TURN):
            if not pattern.linear:
                for block in blocks:
                    selection.keep(block, await _kept_by_thread(pattern, block.names()))
                continue
            async with self._step:
                for block in blocks:
                    selection.keep(block, pattern.keep(block.names()))
                await asyncio.sleep(0)
        return selection.sequence()


class _Evaluation:
    """A pattern on a listing, and how many wait for the result."""

    __slots__ = ("task", "waiting")

    def __init__(self, work: Coroutine[object, object, TopicListing]) -> None:
        self.task = asyncio.get_running_loop().create_task(work)
        self.waiting = 0


def _batches(blocks: Iterator[Block], size: int) -> Iterator[list[Block]]:
    while batch := list(islice(blocks, size)):
        yield batch


async def _kept_by_thread(pattern: TopicsPattern, names: Sequence[bytes]) -> list[bytes]:
    """Match a few names at a time off the loop, so that giving up leaves little behind."""
    loop, kept = asyncio.get_running_loop(), list[bytes]()
    for start in range(0, len(names), NAMES_PER_THREAD_CALL):
        few = names[start : start + NAMES_PER_THREAD_CALL]
        kept.extend(await loop.run_in_executor(None, pattern.keep, few))
    return kept
