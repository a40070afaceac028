"""The common base class of dispatchers, which decides when they run and reads entries."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, Position
from broker.messages.subscriptions.context import Waits
from broker.policies.rate_limiter import RateLimiter
from limiter.clock import Timer
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from broker.messages.entry import Entry
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer

logger = logging.getLogger(__name__)

READ_ENTRIES = 100
"""The largest number of entries of one read (dispatcherMaxReadBatchSize)."""
READ_BYTES = 5 * 1024 * 1024
"""The largest number of bytes of one read (dispatcherMaxReadSizeBytes)."""
FETCH_BYTES = 1024 * 1024
"""The largest number of bytes of one fetch from the store, except for a single larger entry."""
ENTRIES_A_TURN = 300
"""The number of entries that a dispatcher delivers before other topics' dispatchers run."""
READ_AGAIN_SECONDS = 1.0
"""The delay before a failed read or delivery is retried."""
TOLD_A_STEP = 500
"""The number of consumers notified in one step."""
_CANNOT_DELIVER = "messages of %s of %s cannot be delivered"
Place: TypeAlias = tuple[int, int]
"""A position of a pending message: a plain tuple, ignored by the garbage collector.

A million Position objects would prolong each collection, blocking the event loop.
"""
BYTES_AS_AN_ENTRY = 16_384
"""The number of bytes that take as long to send as a small entry."""


class Dispatcher(ABC):
    """The common base class of dispatchers, which deliver a subscription's entries to consumers.

    A dispatcher runs when delivery may have become possible: for new entries, for new permits, or
    at a timer. Each obstacle wakes the dispatcher when it ends: a connection that was full wakes it
    once writable again.

    Attributes:
        consumers: The connected consumers.
        tells_waits: True if statistics include the reason why each consumer waits.

    Args:
        subscription: The subscription.
        topic_rate: The dispatch rate shared by the topic's subscriptions.
    """

    def __init__(self, subscription: AnySubscription, topic_rate: RateLimiter) -> None:
        self._topic = topic = subscription.topic
        self._topic_rate = topic_rate
        self._cursor = subscription.cursor
        self._ledger = topic.ledger
        self._is_due = False
        self._waiting_for = 0
        self._rates: list[RateLimiter] = []
        self._rate_timer = Timer(topic.clock)
        self._read_timer = Timer(topic.clock)
        self._fetching: asyncio.Task[None] | None = None
        # Fetched entries, kept until the next run, and the requested first place, or all requested
        # places. Some entries may be missing: damaged, or dropped.
        self._fetched: list[Entry] = []
        self._asked: Place | frozenset[Place] | None = None
        self.consumers: list[Consumer] = []
        self.tells_waits = topic.rules.tells_waits
        self.policies_changed()

    # -- scheduling ---------------------------------------------------------------------------

    def wake(self) -> None:
        """Schedule a run of the dispatcher, because it may be able to deliver something now."""
        self._run_later()

    def _run_later(self) -> None:
        """Queue a run behind those of other dispatchers; several requests cause one run."""
        if not self._is_due:
            self._is_due = True
            self._topic.turns.later(self._run_due)

    def _run_due(self) -> None:
        self._is_due = False
        self.run()

    def run(self) -> None:
        """Deliver as many entries as possible now; continue in another loop turn if more remain."""
        if not self.consumers or self._read_timer.armed or self._fetching is not None:
            return
        try:
            handled = self._deliver(ENTRIES_A_TURN)
        except Exception:
            # A failure must not affect other dispatchers of the turn, or the topic's other
            # subscriptions.
            logger.exception(_CANNOT_DELIVER, self._cursor.name, self._topic.name)
            self._read_timer.arm(READ_AGAIN_SECONDS, self._begin_anew)
            return
        self._topic.touched()
        if handled >= ENTRIES_A_TURN:
            self._run_later()
        else:
            self._fetched, self._asked = [], None

    # -- reading ------------------------------------------------------------------------------

    def _read(self, first: Position, most: int) -> list[Entry] | None:
        """Return entries, starting at a position; None while they are fetched from the store.

        When the fetch ends, it wakes the dispatcher.
        """
        first = self._ledger.following(Position(first.ledger_id, first.entry_id - 1))
        if self._asked == first:
            return self._take_fetched(most)
        read = self._ledger.read(first, most, READ_BYTES)
        if read is None:
            self._fetch(first, partial(self._ledger.fetch, first, most, FETCH_BYTES))
        return read

    def _take_fetched(self, most: int) -> list[Entry]:
        taken, self._fetched = self._fetched[:most], self._fetched[most:]
        last = taken[-1] if self._fetched else None
        self._asked = None if last is None else (last.ledger_id, last.entry_id + 1)
        return taken

    def _read_each(
        self, positions: Sequence[Position]
    ) -> tuple[Sequence[Position], list[Entry]] | None:
        """Return the first of the given positions, with the entries that are still stored there.

        Return None while the entries are fetched; the end of the fetch wakes the dispatcher.
        """
        asked = self._asked
        if isinstance(asked, frozenset) and positions and positions[0] in asked:
            # Only fetched positions: permits may have grown, and returned entries may precede.
            positions = list(takewhile(asked.__contains__, positions))
            wanted = {*positions}
            return positions, [one for one in self._fetched if one.position in wanted]
        read = self._ledger.read_each(positions)
        if read is None:
            positions = positions[: self._fetched_at_once()]
            self._fetch(frozenset(positions), partial(self._ledger.fetch_each, positions))
            return None
        return positions, read

    def _fetched_at_once(self) -> int:
        """Return the number of entries of average size that fit into FETCH_BYTES; at least 1."""
        ledger = self._ledger
        entries = ledger.count(EARLIEST, ledger.last_confirmed)
        return max(1, FETCH_BYTES * entries // max(1, ledger.size_bytes))

    def _fetch(
        self, asked: Place | frozenset[Place], fetch: Callable[[], Awaitable[list[Entry]]]
    ) -> None:
        self._fetching = asyncio.get_running_loop().create_task(self._take(asked, fetch))

    async def _take(
        self, asked: Place | frozenset[Place], fetch: Callable[[], Awaitable[list[Entry]]]
    ) -> None:
        try:
            entries = await fetch()
        except MessageStoreError as error:
            # Other subscriptions may read elsewhere and continue.
            self._fetching = None
            self._read_later(error)
            return
        except Exception:
            self._fetching = None
            logger.exception(_CANNOT_DELIVER, self._cursor.name, self._topic.name)
            self._read_timer.arm(READ_AGAIN_SECONDS, self._begin_anew)
            return
        self._fetching = None
        self._fetched, self._asked = entries, asked
        self._run_later()

    def _forget_fetched(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None
        self._fetched, self._asked = [], None

    def _begin_anew(self) -> None:
        """Close the consumers, which then reconnect; undelivered entries are read again."""
        if self.consumers:
            self.consumers[0].subscription.close_consumers()

    def _read_later(self, error: MessageStoreError) -> None:
        topic = self._topic
        logger.warning("%s of %s waits for its messages: %s", self._cursor.name, topic.name, error)
        self._read_timer.arm(READ_AGAIN_SECONDS, self.wake)

    @staticmethod
    def _work_of(entries: list[Entry]) -> int:
        """Return the number of small entries that take as long to send as the given entries."""
        return len(entries) + sum(len(entry.data) for entry in entries) // BYTES_AS_AN_ENTRY

    @abstractmethod
    def _deliver(self, most: int) -> int:
        """Deliver about ``most`` entries or fewer; return the number of processed entries."""

    def _call_when_writable(self, consumers: Iterable[Consumer]) -> None:
        for consumer in consumers:
            if consumer.permits > 0 and not consumer.cnx.outbound.writable:
                consumer.cnx.outbound.on_writable(self.wake)

    # -- reading at the end -------------------------------------------------------------------

    def _wait_at_end(self, entries: int) -> None:
        """Record that a read of up to ``entries`` entries waits for the next new entry."""
        if not self._waiting_for:
            self._waiting_for = min(READ_ENTRIES, entries)

    def _end_wait(self, entries: int) -> int:
        """Return the number of entries to read now, which an earlier ``_wait_at_end`` may limit.

        The first entry of a ledger is stored alone, and ends such a read. (Both are recorded: the
        read size decides how many batches a consumer gets beyond its permits.)
        """
        waited_for, self._waiting_for = self._waiting_for, 0
        if waited_for and self._cursor.read_position.entry_id == 0:
            return 1
        return min(entries, waited_for) if waited_for else entries

    # -- reasons for waiting ------------------------------------------------------------------

    def waits(self, consumer: Consumer) -> Waits | None:
        """Return the reason why a consumer receives no message now; None if it soon gets one."""
        if (own := consumer.waits) is not None:
            return own
        if self._read_timer.armed or self._fetching is not None:
            return Waits.STORE
        reason = self._waits_for_entries(consumer)
        return Waits.RATE if reason is None and self._rate_timer.armed else reason

    def _waits_for_entries(self, _: Consumer) -> Waits | None:
        """Return the reason why a consumer with permits gets no entry; None if there is one."""
        return Waits.NOTHING_LEFT if self._cursor.at_end else None

    # -- rates --------------------------------------------------------------------------------

    def policies_changed(self) -> None:
        """Apply the topic's changed dispatch rates."""
        topic = self._topic
        policies, name = topic.policies, self._cursor.name
        rate = policies.dispatch_rates.get(name, policies.subscription_dispatch_rate)
        own = RateLimiter(rate, topic.clock, published=lambda: topic.statistics.usual)
        self._rates = [one for one in (own, self._topic_rate) if one.limited]
        self._rate_timer.stop()  # It was started for the previous rate.
        if self.consumers:
            self.wake()

    def _allowed(self, entries: int) -> int:
        """Return the number of entries that dispatch rates allow now; if 0, schedule a wake-up."""
        for rate in self._rates:
            messages, size_bytes = rate.available()
            entries = min(entries, messages) if size_bytes > 0 else 0
            if entries <= 0:
                self._rate_timer.arm(rate.seconds_until_more(), self.wake)
                return 0
        return entries

    def _count(self, entry: Entry, messages: int) -> None:
        for rate in self._rates:
            rate.take(messages, len(entry.data))

    # -- consumers ----------------------------------------------------------------------------

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """Add a newly connected consumer.

        Raises:
            RequestError: The consumer does not fit the subscription.
        """

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """Remove a disconnected consumer, and redeliver its unacknowledged entries."""

    def remove_all(self) -> None:
        """Remove all consumers, in the order of their arrival."""
        for consumer in list(self.consumers):
            self.remove(consumer)

    def tell(self, consumers: Iterable[Consumer], words: Callable[[Consumer], object]) -> None:
        """Call a function for each of the given consumers, in steps if there are many.

        Consumers that are removed meanwhile are skipped.
        """
        self._topic.turns.in_steps(self._telling(list(consumers), words))

    def _telling(
        self, consumers: list[Consumer], words: Callable[[Consumer], object]
    ) -> Iterator[None]:
        for some in in_parts(consumers, TOLD_A_STEP):
            here = set(self.consumers)
            for consumer in some:
                if consumer in here:
                    words(consumer)
            yield

    @abstractmethod
    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Redeliver a consumer's entries at the given positions or, for None, all its entries.

        With ``more``, further entries follow before any delivery.
        """

    @abstractmethod
    def cursor_moved(self, before: Position) -> None:
        """Forget the entries that the cursor has passed because of a skip, expiry or REST call.

        Args:
            before: The previous mark-delete position.
        """

    @abstractmethod
    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Update the dispatcher's state after messages of an entry were acknowledged.

        Args:
            consumer: The acknowledging consumer.
            position: The entry.
            newly: The number of newly acknowledged messages.
            done: True if no message of the entry remains unacknowledged.
        """

    def entries_added(self) -> None:
        """Deliver new entries, immediately if the current event-loop turn has time left."""
        if not self._is_due and not self._topic.turns.now(self.run):
            self.wake()

    def close(self) -> None:
        """Stop all timers of the dispatcher, and all its reads from the store."""
        self._forget_fetched()
        self._rate_timer.stop()
        self._read_timer.stop()
        for consumer in self.consumers:
            consumer.cnx.outbound.forget_listener(self.wake)
