"""The messages of one topic that the application has received and not yet acknowledged."""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from client.consumers.acknowledging.acknowledgements import Acknowledgements

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator

    from client.consumers.broker_link import BrokerLink
    from client.consumers.options import ConsumerOptions
    from client.messages.message import EntryHead
    from client.messages.message_id import MessageId, Place
    from limiter.clock import Clock, TimerHandle

MOST_ENTRIES = 100_000
"""Maximum number of entries with a deadline; beyond it, the oldest entry is due immediately."""

MOST_AT_ONCE = 1_000
"""Maximum number of due entries handled in one event-loop iteration."""


class DueTimes:
    """A set of entries with a deadline each, grouped into time steps.

    Args:
        clock: The source of time.
        step_seconds: Width of a time step; the entries of a step are due together.
        on_due: Function called with the due entries, after they are removed from the set.
    """

    def __init__(
        self, clock: Clock, step_seconds: float, on_due: Callable[[list[Place]], object]
    ) -> None:
        self._clock = clock
        self._step_seconds = step_seconds
        self._on_due = on_due
        self._step_of: dict[Place, int] = {}
        self._steps: dict[int, dict[Place, None]] = {}
        self._order: list[int] = []
        self._timer: TimerHandle | None = None
        self._timer_step = -1

    def __len__(self) -> int:
        return len(self._step_of)

    def __contains__(self, entry: Place) -> bool:
        return entry in self._step_of

    def __iter__(self) -> Iterator[Place]:
        """Iterate over the entries with a deadline, oldest first."""
        return iter(self._step_of)

    def add(self, entry: Place, delay_seconds: float) -> None:
        """Set the deadline of an entry, unless it has one already."""
        if entry in self._step_of:
            return
        step = int((self._clock.now() + delay_seconds) / self._step_seconds) + 1
        if len(self._step_of) >= MOST_ENTRIES:
            oldest = next(iter(self._step_of))
            self.remove(oldest)
            self._on_due([oldest])
        self._step_of[entry] = step
        if (entries := self._steps.get(step)) is None:
            entries = self._steps[step] = {}
            heappush(self._order, step)
            self._arm()
        entries[entry] = None

    def remove(self, entry: Place) -> bool:
        """Remove an entry and its deadline; return False if it has none."""
        step = self._step_of.pop(entry, None)
        if step is None:
            return False
        del self._steps[step][entry]
        return True

    def clear(self) -> None:
        """Remove all entries and their deadlines."""
        self._step_of.clear()
        self._steps.clear()
        self._order.clear()
        self._arm()

    def _arm(self) -> None:
        step = self._order[0] if self._order else -1
        if step == self._timer_step and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_step = step
        if self._order:
            self._timer = self._clock.call_at(step * self._step_seconds, self._fell_due)

    def _fell_due(self) -> None:
        self._timer = None
        step = self._timer_step
        due: list[Place] = []
        while self._order and self._order[0] <= step and len(due) < MOST_AT_ONCE:
            entries = self._steps[self._order[0]]
            some = list(islice(entries, MOST_AT_ONCE - len(due)))
            due += some
            for entry in some:
                del entries[entry]
                del self._step_of[entry]
            if not entries:
                del self._steps[heappop(self._order)]
        self._arm()  # Due entries left over follow in the next event-loop iteration.
        if due:
            self._on_due(due)


_STEPS = 10
_LEAST_STEP_SECONDS, _LONGEST_STEP_SECONDS = 0.01, 1.0


class Redeliver(Protocol):
    """Interface (typing Protocol) of a function that requests redelivery from the broker."""

    def __call__(self, entries: list[Place], *, timed_out: bool) -> None:
        """Request the redelivery of entries from the broker.

        ``timed_out`` is true after an ack timeout, false after negative acknowledgements.
        """


class Redelivery:
    """The times at which entries are due for redelivery.

    They follow from ack timeouts and negative acknowledgements.

    Args:
        clock: The source of time.
        options: Ack timeout, and delays after negative acknowledgements.
        redeliver: Function called with the entries due for redelivery.

    Source: upstream UnAckedMessageTracker, NegativeAcksTracker.
    """

    def __init__(self, clock: Clock, options: ConsumerOptions, redeliver: Redeliver) -> None:
        self._timeout_seconds = (options.unacked_messages_timeout_ms or 0) / 1_000
        self._backoff = options.negative_ack_backoff
        self._delay_seconds = options.negative_ack_redelivery_delay_ms / 1_000
        shortest = self._delay_seconds
        if self._backoff is not None:
            shortest = self._backoff.min_delay_ms / 1_000
        self._refused = DueTimes(clock, _step(shortest), partial(redeliver, timed_out=False))
        self._unacked = DueTimes(
            clock, _step(self._timeout_seconds), partial(redeliver, timed_out=True)
        )

    @property
    def watches(self) -> bool:
        """True if an ack timeout is configured."""
        return self._timeout_seconds > 0

    @property
    def unacknowledged(self) -> int:
        """Number of entries whose ack timeout is running."""
        return len(self._unacked)

    @property
    def refused(self) -> int:
        """Number of negatively acknowledged entries that await redelivery."""
        return len(self._refused)

    def taken(self, entry: Place) -> None:
        """Start the ack timeout of an entry that the application has received."""
        self._unacked.add(entry, self._timeout_seconds)

    def refuse(self, entry: Place, redelivery_count: int) -> None:
        """Schedule the redelivery of a negatively acknowledged entry."""
        delay = self._delay_seconds
        if self._backoff is not None:
            delay = self._backoff.next(redelivery_count) / 1_000
        self._unacked.remove(entry)
        self._refused.add(entry, delay)

    def forget(self, entry: Place) -> None:
        """Cancel the scheduled redelivery of an entry that was acknowledged or redelivered."""
        self._unacked.remove(entry)
        self._refused.remove(entry)

    def forget_up_to(self, entry: Place) -> None:
        """Cancel the scheduled redelivery of all entries up to and including an entry."""
        for times in (self._unacked, self._refused):
            if len(times):
                for earlier in [one for one in times if one <= entry]:
                    times.remove(earlier)

    def clear(self) -> None:
        """Cancel all scheduled redeliveries, because the broker redelivers everything."""
        self._unacked.clear()
        self._refused.clear()


def _step(seconds: float) -> float:
    return min(max(seconds / _STEPS, _LEAST_STEP_SECONDS), _LONGEST_STEP_SECONDS)


MOST_CHUNKED = 10_000
"""Maximum number of chunked messages whose chunk ids are stored.

Beyond it, the oldest is forgotten, and only its last chunk is acknowledged.
"""


class HandedOut:
    """The messages that the application has received, until acknowledged or redelivered.

    Args:
        clock: The source of time.
        options: Acknowledgement and redelivery options.
        link: Sends the consumer's commands to its broker.
        redeliver: Function called with the entries due for redelivery.
        freed: Function called with the number of released bytes; None if messages do not count as
            memory until acknowledged.

    Attributes:
        acks: Acknowledgements that are not sent yet.
        redelivery: Entries with a scheduled redelivery.
    """

    def __init__(
        self,
        clock: Clock,
        options: ConsumerOptions,
        link: BrokerLink,
        redeliver: Redeliver,
        freed: Callable[[int], None] | None,
    ) -> None:
        self._link = link
        self.acks = Acknowledgements(clock, options, link)
        self.redelivery = Redelivery(clock, options, redeliver)
        self._freed = freed
        self._held: dict[Place, int] = {}
        self._chunks: dict[Place, tuple[MessageId, ...]] = {}
        self._simple = freed is None and not self.redelivery.watches

    def taken(self, head: EntryHead, size_bytes: int) -> None:
        """Track a message that the application has received.

        Its bytes count as client memory until released.
        """
        if self._simple and not head.chunk_ids:
            return
        place = head.ledger_id, head.entry_id
        if head.chunk_ids:
            if len(self._chunks) >= MOST_CHUNKED:
                del self._chunks[next(iter(self._chunks))]
            self._chunks[place] = head.chunk_ids
        if self.redelivery.watches:
            self.redelivery.taken(place)
        if self._freed is not None:
            self._held[place] = self._held.get(place, 0) + size_bytes

    def acknowledge(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge a message and all its chunks; return the future of the broker's receipt.

        Raises:
            InvalidMessage: See Acknowledgements.individual.
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        place = message_id.entry
        if (chunks := self._chunks.pop(place, None)) is not None:
            for chunk in chunks:
                self.acks.entry(chunk.entry)
        elif not self.acks.individual(message_id):
            return self.acks.receipt()
        self.redelivery.forget(place)
        self._release((place,))
        return self.acks.receipt()

    def acknowledge_cumulative(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge all messages up to and including a message.

        Return the future of the broker's receipt, or None: see ``Acknowledgements.receipt``.

        Raises:
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        place = self.acks.cumulative(message_id)
        self.redelivery.forget_up_to(place)
        for one in [one for one in self._chunks if one <= place]:
            del self._chunks[one]
        self._release([one for one in self._held if one <= place])
        return self.acks.receipt()

    def refuse(self, message_id: MessageId, redelivery_count: int) -> None:
        """Schedule the redelivery of a message, which redelivers its whole entry.

        Raises:
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        if self._link.persistent:
            self.redelivery.refuse(message_id.entry, redelivery_count)
        else:  # Never redelivered: release the counted bytes now.
            self.returned((message_id.entry,))

    def returned(self, places: Iterable[Place]) -> list[Place]:
        """Stop tracking entries that will be redelivered.

        Return these entries together with the earlier chunks of their messages.
        """
        everything = list(places)
        self._release(everything)
        for place in tuple(everything):
            self.redelivery.forget(place)
            everything += [chunk.entry for chunk in self._chunks.get(place, ())[:-1]]
        return everything

    def clear(self) -> None:
        """Forget all entries, because the broker redelivers them; keep their chunks' ids."""
        self.redelivery.clear()
        self._release(tuple(self._held))

    def _release(self, places: Iterable[Place]) -> None:
        if self._freed is not None:
            for place in places:
                if size_bytes := self._held.pop(place, 0):
                    self._freed(size_bytes)
