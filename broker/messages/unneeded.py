"""Deletion of stored messages that no subscription needs.

A closed ledger is deleted once no subscription needs it. The open ledger stays for seeking back and
reading; it is deleted, too, after some minutes, or when capacity is scarce.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from broker.messages.errors import MessageStoreError
from broker.messages.position import LATEST
from limiter.tasks import ended
from proto.names import InvalidNameError, TopicName
from server.tasks.cooperative import TURN_SECONDS, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from broker.messages.stores.managed_ledger import MessageStore
    from broker.messages.topic import PersistentTopic
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

LEAST_TOPICS = 50
"""The number of topics that are checked in any case, however long that takes."""
PAUSE_SECONDS = 1.0
"""The least interval in seconds between checks of unloaded topics, whose cursors must be read."""
PART_OF_THE_TIME = 10
"""Checks of many topics take at most about a tenth (1 / PART_OF_THE_TIME) of the time."""


class Topics(Protocol):
    """The interface (typing Protocol) of the broker's topics that ``RoomMaker`` calls."""

    def stored(self) -> Iterator[PersistentTopic]:
        """Yield the loaded persistent topics."""

    def unloaded(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Prevent loading of a topic in a ``with`` block; yield False if it is loaded already."""

    def serves(self, name: TopicName) -> bool:
        """Return True if this broker serves a topic."""

    def policies_of(self, name: TopicName) -> EffectivePolicies:
        """Return the effective policies of a topic."""


class RoomMaker:
    """Deletes all topics' unneeded messages when the store's capacity becomes scarce.

    Args:
        topics: The broker's topics.
        store: The message store.
        clock: The clock for pauses between checks, and for retention.
    """

    def __init__(self, topics: Topics, store: MessageStore, clock: Clock) -> None:
        self._topics = topics
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        # An unfinished check of the loaded topics.
        self._looks: Iterator[None] | None = None
        self._freed_nothing = False
        self._not_before = clock.now()
        self._has_had_its_turn = False
        store.when_scarce(self.make)

    def make(self) -> None:
        """Delete unneeded messages for the time of one event-loop turn; continue in later turns."""
        if self._has_had_its_turn:
            return
        loop = asyncio.get_running_loop()
        self._has_had_its_turn = True
        loop.call_soon(self._turn_ended)
        self._look_on()
        if self._task is None:
            self._task = loop.create_task(self._go_on())
            self._task.add_done_callback(self._done)

    def _turn_ended(self) -> None:
        self._has_had_its_turn = False

    def _look_on(self) -> None:
        """Delete unneeded messages of loaded topics for the time of one event-loop turn."""
        if self._looks is None:
            self._looks = self._through_loaded()
        end = perf_counter() + TURN_SECONDS
        for looked_at, _ in enumerate(self._looks, 1):
            if looked_at >= LEAST_TOPICS and perf_counter() >= end:
                return
        self._looks = None

    def _through_loaded(self) -> Iterator[None]:
        dropped_bytes = 0
        for topic in self._topics.stored():
            before = topic.ledger.size_bytes
            try:
                topic.drop_unneeded()
            except MessageStoreError as error:
                logger.info("%s keeps its messages: %s", topic.ledger.name, error)
            dropped_bytes += before - topic.ledger.size_bytes
            yield
        self._freed_nothing = not dropped_bytes

    async def _go_on(self) -> None:
        while self._looks is not None:
            await asyncio.sleep(0)
            self._look_on()
        if self._freed_nothing and self._clock.now() >= self._not_before:
            self._not_before = self._clock.now() + PAUSE_SECONDS
            begun = self._clock.now()
            await self._through_unloaded()
            self._not_before += PART_OF_THE_TIME * (self._clock.now() - begun)

    async def _through_unloaded(self) -> None:
        async for name in in_turns(self._store.names()):
            try:
                await self._drop_stored(TopicName.parse(name))
            except InvalidNameError:
                continue  # Compacted entries are deleted with the topic.
            except MessageStoreError as error:
                logger.info("%s keeps its messages: %s", name, error)

    async def _drop_stored(self, name: TopicName) -> None:
        async with self._topics.unloaded(str(name)) as is_unloaded:
            if not is_unloaded or not self._topics.serves(name):
                return
            ledger = await self._store.unopened_ledger(str(name))
            if ledger is None:
                return
            marks = [one.mark_delete for one in ledger.cursors.values()]
            if ledger.ledgers[-1].entries and min(marks, default=LATEST) >= ledger.last_confirmed:
                ledger.roll()
            end = ledger.following(ledger.last_confirmed)
            needed = min(map(ledger.following, marks), default=end)
            retention = self._topics.policies_of(name).retention
            ledger.trim(needed, *retention.bounds(self._clock.wall_ms()))

    def _done(self, _: asyncio.Task[None]) -> None:
        self._task = None

    async def close(self) -> None:
        """Stop deleting unneeded messages."""
        await ended(self._task)
