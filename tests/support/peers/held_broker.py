"""Holds a running broker's watches at each of their waiting places."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.service import BrokerService
from broker.topic_lists.sequence import TopicListing
from limiter.memory.dual_limiter import LimitType
from tests.support.stores.blocked_store import BlockedStore


class BlockedFilter:
    """Evaluates patterns and answers on command.

    Attributes:
        asked: The requested patterns, in order.
        go_on: Set to release answers.
    """

    def __init__(self, broker: BrokerService) -> None:
        pattern_filter = broker.watches._context.pattern_filter
        self._original = pattern_filter.filter
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        pattern_filter.filter = self._filter  # type: ignore[method-assign]

    async def _filter(self, listing: TopicListing, pattern: str) -> TopicListing:
        self.asked.append(pattern)
        kept = await self._original(listing, pattern)
        await self.go_on.wait()
        return kept


@asynccontextmanager
async def all_of(broker: BrokerService, kind: LimitType) -> AsyncIterator[None]:
    """Hold all memory of a kind for the length of a block."""
    limiter = broker.limiter
    permit = await limiter.acquire(kind, limiter.available_permits(kind))
    try:
        yield
    finally:
        limiter.release(permit)


@asynccontextmanager
async def held_at(broker: BrokerService, place: str) -> AsyncIterator[None]:
    """Hold all arriving watches at one place: the store, the filter, heap or direct memory."""
    if place in ("store", "filter"):
        held = BlockedStore(broker) if place == "store" else BlockedFilter(broker)
        yield
        held.go_on.set()
        return
    async with all_of(broker, LimitType(f"{place}")):
        yield
