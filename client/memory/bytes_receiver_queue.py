"""The receiver queue that grants permits by bytes: policy "bytes", the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.client_memory.prefetch import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.counted_bytes import CountedBytes
    from client.memory.pending_questions import PendingQuestions
    from client.memory.receiver_queue import Granting

EXPANSION_THRESHOLD = 0.75
"""The fraction of the limit below which queues grow."""
UNKNOWN_ENTRY_BYTES = 128 * 1024
"""The room an entry is given before one has come: the size of a full batch."""
FALL_SHIFT = 4
"""The moving sizes rise at once, and fall by a sixteenth of the difference."""


class BytesReceiverQueue:
    """A queue whose permits are for bytes that are free. See ReceiverQueue for its methods.

    A permit may bring a whole entry, so the first costs the moving size of an entry; each further
    one the moving size of a message, which is that of an entry unless there are batches. If not
    even the first fits, the consumer holds no permits and waits for its turn.

    The size is how many messages may be under way and queued. It doubles when the application
    found nothing, the broker said that more is pending, and memory is free.

    Args:
        consumer: Whose queue it is.
        counted: The bytes of its messages.
        questions: Asks whether more is pending.
        min_size: Where it starts, and the least it shrinks to; at least 1.
        max_size: The most it grows to.
        on_close: Called when it closes.

    Attributes:
        asking: The application waits for a message.
        outstanding: Permits that the broker has; below 0 after a batch that was larger.
        full: The last message used up the last permit, and the queue has not grown since.
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
        """See ReceiverQueue."""
        return self._size

    # -- what happens to the consumer ---------------------------------------------------------

    def attached(self) -> None:
        """See ReceiverQueue."""
        self._attached = True
        self._queued = self.outstanding = 0
        self._counted.dropped()
        self._prefetch.leave(self._turn)
        self._want()

    def detached(self) -> None:
        """See ReceiverQueue; others have what was promised to it."""
        self._attached = False
        self._questions.forget(self)
        self._prefetch.leave(self._turn)

    def arrived(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        if not messages:
            self._counted.arrived(size_bytes)  # More of an entry that came before.
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
        """See ReceiverQueue."""
        self._queued = queued = self._queued - messages
        self._counted.taken(size_bytes)
        if self._size - queued - self.outstanding >= self._enough:
            self._want()

    def acknowledged(self, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """See ReceiverQueue."""
        self.asking = True
        self._want()
        if self.may_grow and not self._prefetch.stands_in_line(self._turn):
            self._questions.ask(self)

    def pause(self) -> None:
        """See ReceiverQueue."""
        self._paused = True
        self._prefetch.step_back(self._turn)

    def resume(self) -> None:
        """See ReceiverQueue."""
        self._paused = False
        self._want()

    def close(self) -> None:
        """See ReceiverQueue."""
        self._attached = False
        self._questions.forget(self)
        self._counted.close()
        self._on_close(self)
        self._prefetch.leave(self._turn)

    @property
    def kept_bytes(self) -> int:
        """See TurnTaker."""
        return self._counted.handed_out

    # -- its size -----------------------------------------------------------------------------

    @property
    def may_grow(self) -> bool:
        """True if the queue can be larger, and memory is free."""
        if self._size >= self._max_size or not self._attached:
            return False
        return self._memory.current_usage_fraction < EXPANSION_THRESHOLD

    async def more_is_pending(self) -> bool:
        """See Granting."""
        return await self._consumer.more_is_pending()

    def grow(self) -> None:
        """Double the queue: the application found nothing, though more is pending."""
        if self.may_grow:
            self._set_size(min(self._max_size, 2 * self._size))
            self.growths += 1
            self.full = False
            self._want()

    def shrink(self) -> None:
        """Halve the queue: memory is nearly used up. What is under way comes all the same."""
        size = max(self._min_size, self._size // 2)
        if size < self._size:
            self._set_size(size)
            self.shrinks += 1

    def _set_size(self, size: int) -> None:
        self._size = size
        # Permits that came free are granted when they are half of the queue.
        self._enough = max(1, size // 2)

    # -- what it grants -----------------------------------------------------------------------

    def _want(self) -> None:
        """Grant what came free, if that is half of the queue and memory allows it."""
        wanted = self._size - self._queued
        if wanted <= 0 or wanted - self.outstanding < self._enough:
            return
        if self._paused or not self._attached:
            return
        if self.outstanding <= 0:
            self._prefetch.ask(self._turn)
            return
        # The size that memory allows may be smaller, and its half is enough.
        most = self.outstanding + self._prefetch.room() // self._message_bytes
        granted = min(wanted, most) - self.outstanding
        if granted >= max(1, min(self._size, self._queued + most) // 2):
            self._grant(self.outstanding + granted)

    def turn_came(self, room_bytes: int) -> None:
        """See TurnTaker."""
        wanted = self._size - self._queued
        if wanted > 0:
            self._grant(min(wanted, 1 + room_bytes // self._message_bytes))

    def _grant(self, outstanding: int) -> None:
        permits = outstanding - self.outstanding
        self.outstanding = outstanding
        more = (outstanding - 1) * self._message_bytes
        self._prefetch.promise(self._turn, self.entry_bytes, more)
        self._consumer.grant(permits)
