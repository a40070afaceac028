"""The receiver queue that lets the broker send what fits the free memory (policy "bytes")."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from client.exceptions import PulsarException
from limiter.client_memory.prefetch import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.receiver_queue import CountedBytes, Granting
    from limiter.clock import Clock

logger = logging.getLogger(__name__)


QUESTION_SECONDS = 1.0
"""Seconds between two requests whether the broker has more messages, and their validity."""


class PendingQuestions:
    """The requests by which a consumer asks whether its broker has more messages.

    One is pending at a time, and at most one is sent per second. For a second after a positive
    answer, a queue that the broker fills grows without a new request: the pending messages went
    into the queue.

    Args:
        clock: The source of time.
        tasks: The owner's set of running requests, which are awaited at close.

    Attributes:
        latest: The queue of the consumer's topic that received a message last. Only its broker is
            asked; the other topics have no messages, or enough permits.
    """

    def __init__(self, clock: Clock, tasks: set[asyncio.Task[None]]) -> None:
        self._clock = clock
        self._tasks = tasks
        self._next_at = 0.0
        self._asked: BytesReceiverQueue | None = None
        self._pending: BytesReceiverQueue | None = None
        self._task: asyncio.Task[None] | None = None
        self.latest: BytesReceiverQueue | None = None

    def ask(self, queue: BytesReceiverQueue) -> None:
        """Grow a queue if the broker has more messages; ask the broker at most once a second."""
        if self.latest is not None and self.latest is not queue:
            return
        now = self._clock.now()
        if now < self._next_at:
            if queue.full and self._pending is queue:
                queue.grow()
        elif self._task is None:
            self._next_at = now + QUESTION_SECONDS
            self._asked, self._pending = queue, None
            self._task = asyncio.get_running_loop().create_task(self._question(queue))
            self._tasks.add(self._task)
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._task = None

    async def _question(self, queue: BytesReceiverQueue) -> None:
        try:
            if await queue.more_is_pending():
                self._pending = queue
                queue.grow()
        except PulsarException as error:
            logger.debug("The broker did not say whether more is pending: %s", error)

    def forget(self, queue: BytesReceiverQueue) -> None:
        """Stop asking the broker about a queue that was closed or has lost its connection."""
        if self._asked is queue and self._task is not None:
            self._task.cancel()
        if self.latest is queue:
            self.latest = None
        if self._pending is queue:
            self._pending = None


EXPANSION_THRESHOLD = 0.75
"""Memory usage below which queues may grow, as a fraction of the limit."""
UNKNOWN_ENTRY_BYTES = 128 * 1024
"""Assumed size of the first entry in bytes, as large as a full batch."""
FALL_SHIFT = 4
"""Moving averages of sizes rise immediately, and fall by a sixteenth of the difference."""


class BytesReceiverQueue:
    """A receiver queue that lets the broker send as much as fits the client's free memory.

    ReceiverQueue describes its methods. A permit may bring a whole entry. Therefore the first
    permit costs the moving average of entry sizes, and each further permit the moving average of
    message sizes (the same without batches). If even the first permit does not fit, the consumer
    holds no permits and waits in line.

    The size limits in-flight and queued messages. The size doubles after the application found an
    empty queue, the broker reported pending messages, and memory is free.

    Args:
        consumer: The consumer that owns the queue.
        counted: The bytes of the consumer's messages.
        questions: Asks the broker whether it has more messages.
        min_size: Initial and minimum size in messages; at least 1.
        max_size: Maximum size in messages.
        on_close: Function called when the queue is closed.

    Attributes:
        asking: Whether the application waits for a message.
        outstanding: Permits that the broker still has; negative after a batch larger than the
            permits.
        full: Whether the last message used up the permits, and the queue has not grown since.
    """

    def __init__(
        self,
        consumer: Granting,
        counted: CountedBytes,
        questions: PendingQuestions,
        min_size: int,
        max_size: int,
        on_close: Callable[[BytesReceiverQueue], object],
    ) -> None:
        self._consumer = consumer
        self._memory = counted.memory
        self._prefetch = counted.memory.prefetch
        self._counted = counted
        self._on_close = on_close
        self._questions = questions
        self._min_size = min_size
        self._max_size = max_size
        self._set_size(min_size)
        self._turn = Turn(self)
        self._queued = 0
        self._attached = self._paused = False
        self._message_bytes = UNKNOWN_ENTRY_BYTES
        self._sizes_known = False
        self.entry_bytes = UNKNOWN_ENTRY_BYTES
        self.asking = False
        self.outstanding = 0
        self.full = False
        self.growths = self.shrinks = 0

    @property
    def current_size(self) -> int:
        """Current limit on messages queued in the client or on their way to it."""
        return self._size

    # -- events of the consumer ---------------------------------------------------------------

    def attached(self) -> None:
        """Grant the broker permits after subscribing, which makes earlier permits void."""
        self._attached = True
        self._queued = self.outstanding = 0
        self._counted.dropped()
        self._prefetch.leave(self._turn)
        self._want()

    def detached(self) -> None:
        """Grant no permits until attached again.

        The memory intended for permitted messages is released.
        """
        self._attached = False
        self._questions.forget(self)
        self._prefetch.leave(self._turn)

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count the messages and bytes of a received entry."""
        if not messages:
            self._counted.arrived(size_bytes)  # A further part of an earlier entry.
            return
        self._learn(size_bytes, size_bytes // messages)
        self._queued += messages
        self._questions.latest = self
        self.asking = False
        self.outstanding = left = self.outstanding - messages
        if left > 0:
            turn = self._turn
            more = (left - 1) * self._message_bytes
            if more < turn.more_bytes:
                self._prefetch.came(turn, more)
            turn.used = True
            self._counted.arrived(size_bytes)
        else:
            self.full = True
            self._counted.arrived(size_bytes)
            self._prefetch.end(self._turn)

    def _learn(self, entry_bytes: int, message_bytes: int) -> None:
        message_bytes = max(1, message_bytes)  # A null value has none.
        if not self._sizes_known:
            self._sizes_known = True
            self.entry_bytes, self._message_bytes = entry_bytes, message_bytes
            return
        over = entry_bytes - self.entry_bytes
        self.entry_bytes += over if over > 0 else over >> FALL_SHIFT
        over = message_bytes - self._message_bytes
        self._message_bytes += over if over > 0 else over >> FALL_SHIFT

    def taken(self, messages: int, size_bytes: int) -> None:
        """Free the permits of messages that were removed from the queue."""
        self._queued = queued = self._queued - messages
        self._counted.taken(size_bytes)
        if self._size - queued - self.outstanding >= self._enough:
            self._want()

    def acknowledged(self, size_bytes: int) -> None:
        """Stop counting the bytes of messages that were acknowledged or redelivered."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """Request messages, because the application waits and the queue is empty."""
        self.asking = True
        self._want()
        if self.may_grow and not self._prefetch.stands_in_line(self._turn):
            self._questions.ask(self)

    def pause(self) -> None:
        """Grant the broker no permits until ``resume``."""
        self._paused = True
        self._prefetch.step_back(self._turn)

    def resume(self) -> None:
        """Grant the broker permits again."""
        self._paused = False
        self._want()

    def close(self) -> None:
        """Stop counting all messages and bytes, and grant no further permits."""
        self._attached = False
        self._questions.forget(self)
        self._counted.close()
        self._on_close(self)
        self._prefetch.leave(self._turn)

    @property
    def kept_bytes(self) -> int:
        """Bytes of messages that the application has received and that still count as memory."""
        return self._counted.handed_out

    # -- size ---------------------------------------------------------------------------------

    @property
    def may_grow(self) -> bool:
        """True if the queue is smaller than its maximum, and memory is free."""
        if self._size >= self._max_size or not self._attached:
            return False
        return self._memory.current_usage_fraction < EXPANSION_THRESHOLD

    async def more_is_pending(self) -> bool:
        """Return True if the broker has more messages than it is permitted to send."""
        return await self._consumer.more_is_pending()

    def grow(self) -> None:
        """Double the queue's size, because it was empty while the broker had messages."""
        if self.may_grow:
            self._set_size(min(self._max_size, 2 * self._size))
            self.growths += 1
            self.full = False
            self._want()

    def shrink(self) -> None:
        """Halve the queue's size, because memory is nearly used up.

        Messages on their way still arrive.
        """
        size = max(self._min_size, self._size // 2)
        if size < self._size:
            self._set_size(size)
            self.shrinks += 1

    def _set_size(self, size: int) -> None:
        self._size = size
        # Freed permits are granted at half of the queue.
        self._enough = max(1, size // 2)

    # -- permits ------------------------------------------------------------------------------

    def _want(self) -> None:
        """Request memory for new permits, once half of the queue or more is free."""
        wanted = self._size - self._queued
        if wanted <= 0 or wanted - self.outstanding < self._enough:
            return
        if self._paused or not self._attached:
            return
        if self.outstanding <= 0:
            self._prefetch.ask(self._turn)
            return
        # Memory may permit only a smaller size, whose half suffices.
        most = self.outstanding + self._prefetch.room() // self._message_bytes
        granted = min(wanted, most) - self.outstanding
        if granted >= max(1, min(self._size, self._queued + most) // 2):
            self._grant(self.outstanding + granted)

    def turn_came(self, room_bytes: int) -> None:
        """Grant permits for one entry, and for the further messages that fit in ``room_bytes``."""
        wanted = self._size - self._queued
        if wanted > 0:
            self._grant(min(wanted, 1 + room_bytes // self._message_bytes))

    def _grant(self, outstanding: int) -> None:
        permits = outstanding - self.outstanding
        self.outstanding = outstanding
        more = (outstanding - 1) * self._message_bytes
        self._prefetch.promise(self._turn, self.entry_bytes, more)
        self._consumer.grant(permits)
