"""The base of dispatchers: when one runs, what it may read, and how it waits."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import EARLIEST, Position
from broker.policies.rate_limiter import RateLimiter
from broker.subscriptions.waits import Waits
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from broker.messages.entry import Entry
    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import SubscriptionContext
    from limiter.clock import TimerHandle

logger = logging.getLogger(__name__)

READ_ENTRIES = 100
"""Most entries of one read (dispatcherMaxReadBatchSize)."""
READ_BYTES = 5 * 1024 * 1024
"""Most bytes of one read (dispatcherMaxReadSizeBytes)."""
FETCH_BYTES = 1024 * 1024
"""Most bytes of one read of entries that are not in memory, unless a single one has more."""
ENTRIES_A_TURN = 300
"""Entries after which other topics have their turn."""
READ_AGAIN_SECONDS = 1.0
"""Entries that could not be read, or delivered, are read again so much later."""
TOLD_A_STEP = 500
"""Consumers that are told something in one step."""
_CANNOT_DELIVER = "messages of %s of %s cannot be delivered"
Place: TypeAlias = tuple[int, int]
"""A position as it is kept for each message that consumers have: a plain tuple, which the garbage
collector passes over. With a million of Position each of its long looks would hold up everybody."""
BYTES_AS_AN_ENTRY = 16_384
"""Bytes that are sent in the time in which one small entry is."""


class Dispatcher(ABC):
    """Hands the entries of one subscription to its consumers.

    It runs when there may be something to do: entries came, a consumer has room again, a timer
    fired. What stops it wakes it: a connection that is not writable when it is writable again.

    Attributes:
        consumers: Those that are connected.
        tells_waits: Statistics say what each consumer waits for.
    """

    def __init__(self, context: SubscriptionContext) -> None:
        self._context = context
        self._cursor = context.cursor
        self._ledger = context.topic.ledger
        self._is_due = False
        self._waiting_for = 0
        self._rates: list[RateLimiter] = []
        self._rate_timer: TimerHandle | None = None
        self._read_timer: TimerHandle | None = None
        self._fetching: asyncio.Task[None] | None = None
        # What was fetched until the run that it was fetched for, and the first place that was asked
        # for, or all places. Of these entries some may be missing: they are damaged, or gone.
        self._fetched: list[Entry] = []
        self._asked: Place | frozenset[Place] | None = None
        self.consumers: list[Consumer] = []
        self.tells_waits = context.rules.tells_waits
        self.policies_changed()

    # -- when it runs -------------------------------------------------------------------------

    def wake(self) -> None:
        """Run soon, in turn with all others; often asked is once."""
        if not self._is_due:
            self._is_due = True
            self._context.turns.later(self._run_due)

    def _run_due(self) -> None:
        self._is_due = False
        self.run()

    def run(self) -> None:
        """Deliver what can be delivered now; go on in another turn if there is more."""
        if not self.consumers or self._read_timer is not None or self._fetching is not None:
            return
        try:
            handled = self._deliver(ENTRIES_A_TURN)
        except Exception:
            # Whatever it is: those who share the turn, and the topic's other subscriptions, go on.
            logger.exception(_CANNOT_DELIVER, self._cursor.name, self._context.topic.name)
            self._rest(self._begin_anew)
            return
        if handled >= ENTRIES_A_TURN:
            self.wake()
        else:
            self._fetched, self._asked = [], None

    # -- reading ------------------------------------------------------------------------------

    def _read(self, first: Position, most: int) -> list[Entry] | None:
        """Return entries from a position on; None if they are being fetched, which wakes it."""
        first = self._ledger.following(Position(first.ledger_id, first.entry_id - 1))
        if self._asked == first:
            return self._take_fetched(most)
        read = self._ledger.read(first, most, READ_BYTES)
        if read is None:
            self._fetch(first, partial(self._ledger.fetch, first, most, FETCH_BYTES))
        return read

    def _take_fetched(self, most: int) -> list[Entry]:
        """Return the first entries of what was fetched in a row."""
        taken, self._fetched = self._fetched[:most], self._fetched[most:]
        last = taken[-1] if self._fetched else None
        self._asked = None if last is None else (last.ledger_id, last.entry_id + 1)
        return taken

    def _read_each(
        self, positions: Sequence[Position]
    ) -> tuple[Sequence[Position], list[Entry]] | None:
        """Return the first of some positions, and their entries that are still stored.

        None if they are being fetched, which wakes it.
        """
        asked = self._asked
        if isinstance(asked, frozenset) and positions and positions[0] in asked:
            # By now there may be room for more; what was given back meanwhile would be first.
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
        """Return how many entries of the topic's mean size have FETCH_BYTES; at least one."""
        ledger = self._ledger
        entries = ledger.count(EARLIEST, ledger.last_confirmed)
        return max(1, FETCH_BYTES * entries // max(1, ledger.size_bytes))

    def _fetch(
        self, asked: Place | frozenset[Place], fetch: Callable[[], Awaitable[list[Entry]]]
    ) -> None:
        """Wait for entries that are not in memory, and run again then."""
        self._fetching = asyncio.get_running_loop().create_task(self._take(asked, fetch))

    async def _take(
        self, asked: Place | frozenset[Place], fetch: Callable[[], Awaitable[list[Entry]]]
    ) -> None:
        try:
            entries = await fetch()
        except MessageStoreError as error:
            # Other subscriptions may read elsewhere: they go on.
            self._fetching = None
            self._read_later(error)
            return
        except Exception:
            self._fetching = None
            logger.exception(_CANNOT_DELIVER, self._cursor.name, self._context.topic.name)
            self._rest(self._begin_anew)
            return
        self._fetching = None
        self._fetched, self._asked = entries, asked
        self.wake()

    def _forget_fetched(self) -> None:
        """Drop what was fetched for another place, and what is being fetched."""
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None
        self._fetched, self._asked = [], None

    def _begin_anew(self) -> None:
        """Close the consumers, who come again: what was read and not delivered is read again."""
        self._read_timer = None
        if self.consumers:
            self.consumers[0].subscription.close_consumers()

    def _rest(self, then: Callable[[], None]) -> None:
        clock = self._context.topic.clock
        self._read_timer = clock.call_at(clock.now() + READ_AGAIN_SECONDS, then)

    def _read_later(self, error: MessageStoreError) -> None:
        topic = self._context.topic
        logger.warning("%s of %s waits for its messages: %s", self._cursor.name, topic.name, error)
        self._rest(self._read_again)

    def _read_again(self) -> None:
        self._read_timer = None
        self.wake()

    @staticmethod
    def _work_of(entries: list[Entry]) -> int:
        """Return how many small entries are as much work as these."""
        return len(entries) + sum(len(entry.data) for entry in entries) // BYTES_AS_AN_ENTRY

    @abstractmethod
    def _deliver(self, most: int) -> int:
        """Deliver about as many entries at most; return how many were handled."""

    def _call_when_writable(self, consumers: Iterable[Consumer]) -> None:
        for consumer in consumers:
            if consumer.permits > 0 and not consumer.cnx.outbound.writable:
                consumer.cnx.outbound.on_writable(self.wake)

    # -- reading at the end -------------------------------------------------------------------

    def _wait_at_end(self, entries: int) -> None:
        """Note that a read of so many entries waits for the next one to come."""
        if not self._waiting_for:
            self._waiting_for = min(READ_ENTRIES, entries)

    def _end_wait(self, entries: int) -> int:
        """Return how many entries to read now; after a wait at most what was asked for then.

        The first entry of a ledger is stored by itself, and ends such a read. (Both recorded: it
        decides how many batches a consumer gets that has room for less than one.)
        """
        waited_for, self._waiting_for = self._waiting_for, 0
        if waited_for and self._cursor.read_position.entry_id == 0:
            return 1
        return min(entries, waited_for) if waited_for else entries

    # -- why a consumer gets nothing ----------------------------------------------------------

    def waits(self, consumer: Consumer) -> Waits | None:
        """Return what a consumer waits for; None if it gets a message next."""
        if (own := consumer.waits) is not None:
            return own
        if self._rate_timer is not None:
            return Waits.RATE
        if self._read_timer is not None or self._fetching is not None:
            return Waits.STORE
        return self._waits_for_entries(consumer)

    def _waits_for_entries(self, _: Consumer) -> Waits | None:
        """Return why there is no entry for a consumer that could take one."""
        return Waits.NOTHING_LEFT if self._cursor.at_end else None

    # -- rates --------------------------------------------------------------------------------

    def policies_changed(self) -> None:
        """Dispatch by the rates that are in force now."""
        topic = self._context.topic
        policies, name = topic.policies, self._cursor.name
        rate = policies.dispatch_rates.get(name, policies.subscription_dispatch_rate)
        own = RateLimiter(rate, topic.clock)
        self._rates = [one for one in (own, self._context.topic_rate) if one.limited]
        if self._rate_timer is not None:  # It waits for the rate of before.
            self._rate_timer.cancel()
            self._rate_timer = None
        if self.consumers:
            self.wake()

    def _allowed(self, entries: int) -> int:
        """Return how many entries may be read now; wake up later if there are none."""
        for rate in self._rates:
            messages, size_bytes = rate.available()
            entries = min(entries, messages) if size_bytes > 0 else 0
            if entries <= 0:
                self._wake_after(rate.seconds_until_more())
                return 0
        return entries

    def _wake_after(self, seconds: float) -> None:
        if self._rate_timer is None:
            clock = self._context.topic.clock
            self._rate_timer = clock.call_at(clock.now() + seconds, self._rate_allows)

    def _rate_allows(self) -> None:
        self._rate_timer = None
        self.wake()

    def _count(self, entry: Entry, messages: int) -> None:
        """Count a delivered entry against the rates."""
        for rate in self._rates:
            rate.take(messages, len(entry.data))

    # -- consumers ----------------------------------------------------------------------------

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """Take a consumer.

        Raises:
            RequestError: It cannot be one of these.
        """

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go; what it had and did not acknowledge goes to others."""

    def remove_all(self) -> None:
        """Let all consumers go, the first that came first."""
        for consumer in list(self.consumers):
            self.remove(consumer)

    def tell(self, consumers: Iterable[Consumer], words: Callable[[Consumer], object]) -> None:
        """Tell consumers something, very many in steps; who leaves meanwhile is not told."""
        self._context.turns.in_steps(self._telling(list(consumers), words))

    def _telling(
        self, consumers: list[Consumer], words: Callable[[Consumer], object]
    ) -> Iterator[None]:
        for some in in_parts(consumers, TOLD_A_STEP):
            here = set(self.consumers)
            for consumer in some:
                if consumer in here:
                    words(consumer)
            yield

    def flowed(self, consumer: Consumer) -> None:
        """Deliver to a consumer that has more room."""
        self.wake()

    @abstractmethod
    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Deliver again what a consumer gives back; None for all that it has.

        With ``more``, others are told next, and nothing is delivered before.
        """

    @abstractmethod
    def cursor_moved(self, before: Position) -> None:
        """Forget what was acknowledged otherwise: the cursor was moved by skip, expiry or REST.

        Args:
            before: Where the mark-delete stood.
        """

    @abstractmethod
    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Follow an acknowledgement.

        Args:
            consumer: Who acknowledged.
            position: The entry.
            newly: Messages of it that were not acknowledged before.
            done: None is left.
        """

    def entries_added(self) -> None:
        """Deliver what was stored, at once if this turn has time for it."""
        if not self._is_due and not self._context.turns.now(self.run):
            self.wake()

    def close(self) -> None:
        """End its timers and its reads."""
        self._forget_fetched()
        if self._rate_timer is not None:
            self._rate_timer.cancel()
            self._rate_timer = None
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        for consumer in self.consumers:
            consumer.cnx.outbound.forget_listener(self.wake)
