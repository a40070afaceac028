"""The queue places and the memory of a producer, and the sends that wait for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from client.exceptions import (
    AlreadyClosed,
    MemoryBufferIsFullError,
    ProducerQueueIsFullError,
    PulsarException,
)
from limiter.client_memory.errors import (
    MemoryReserveClosedError,
    MemoryReserveError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from client.producers.sending.pending_message import PendingMessage
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.client_memory.reservation import MemoryWaiter

MOST_WAITING = 10_000
"""Sends that wait in a producer's line; the next one fails."""
MOST_IN_A_TURN = 1_000
"""Messages that go on in one turn, which must not take long."""
BARE_MESSAGE_BYTES = 1_024
"""Bytes that a message costs beside its own, where their number has no bound of its own."""
_CLOSED = "the client was closed"


class SendLine:
    """Gives messages their place in the queue, then their memory: in the order of asking.

    Only the first of the line waits for memory, so that each producer of a client has one request
    in the controller's queue: they take turns there, however many sends each has.

    Args:
        memory: The client's limit.
        max_places: Messages, or parts of one, without a receipt; 0 is no bound.
        take: Sends a message that has its place and memory, or its next part; returns whether
            nothing of it is left to be sent. It may fail the message, which then counts as sent.
        turn_came: Called when those that had to wait for another turn may go on; ``go_on`` if None.

    Attributes:
        places: How many are taken.
        is_held: Nobody goes on while it is true.
    """

    def __init__(
        self,
        memory: MemoryLimitController,
        max_places: int,
        take: Callable[[PendingMessage], bool],
        turn_came: Callable[[], object] | None = None,
    ) -> None:
        self._memory = memory
        self._max_places = max_places
        self._overhead_bytes = 0 if max_places else BARE_MESSAGE_BYTES
        self._take = take
        self._turn_came = turn_came or self.go_on
        # A dict whose front is deleted again and again looks for its first ever longer.
        self._line: OrderedDict[PendingMessage, None] = OrderedDict()
        self._request: MemoryWaiter | None = None
        self._waking: asyncio.Task[None] | None = None
        self.places = 0
        self.is_held = False
        self._rests = False

    def __len__(self) -> int:
        return len(self._line)

    @property
    def _stands(self) -> bool:
        """True while nobody goes on."""
        return self.is_held or self._rests

    @property
    def first(self) -> PendingMessage | None:
        """The first that waits."""
        return next(iter(self._line), None)

    def has_places(self, count: int) -> bool:
        """Tell whether so many places are free."""
        return not self._max_places or self.places + count <= self._max_places

    # -- asking -------------------------------------------------------------------------------

    def enter(self, message: PendingMessage) -> None:
        """Send a message at once, or let it stand in line if it waits.

        Raises:
            ProducerQueueIsFullError: There is no place, or others are before it.
            MemoryBufferIsFullError: There is no memory.
            AlreadyClosed: The limit was closed with its client.
        """
        # Found out before it is anywhere: an interceptor may have left what has no size.
        message.needs_bytes = message.held_bytes + self._overhead_bytes
        if message.waits:
            self._stand_in_line(message)
            self.go_on()
            return
        if not self.has_places(1) or (self._line and not self._all_are_admitted):
            raise self._queue_is_full()
        if not self._reserve_at_once(message):
            raise MemoryBufferIsFullError(
                f"the client's memory is used up ({self._memory.current_usage} bytes): "
                "await send(), or raise memory_limit_bytes"
            )
        self.places += 1
        if self._line or self._stands:
            message.placed = True
            self._line[message] = None
        elif not self._take(message):
            self._line[message] = None
            self.go_on()

    @property
    def _all_are_admitted(self) -> bool:
        """True if those in the line wait for their turn alone: who is the last has all it needs.

        A message in parts is to get the places that become free: nobody may take them before it.
        """
        return next(iter(self._line)).chunks is None and next(reversed(self._line)).is_admitted

    def _reserve_at_once(self, message: PendingMessage) -> bool:
        try:
            message.reservation = self._memory.try_reserve(message.needs_bytes)
        except MemoryReserveClosedError:
            raise AlreadyClosed(_CLOSED) from None
        return message.reservation is not None

    def _stand_in_line(self, message: PendingMessage) -> None:
        if len(self._line) >= MOST_WAITING:
            raise ProducerQueueIsFullError(
                f"{len(self._line)} sends wait for this producer already: send from fewer tasks"
            )
        self._line[message] = None

    def _queue_is_full(self) -> PulsarException:
        if self._request is not None:
            return MemoryBufferIsFullError(
                "the client's memory is used up, and other sends wait for it: await send()"
            )
        return ProducerQueueIsFullError(
            f"{self.places} messages have no receipt yet, and {len(self._line)} wait: await "
            "send(), or raise max_pending_messages"
        )

    # -- going on -----------------------------------------------------------------------------

    def give_back(self, places: int = 1) -> None:
        """Free places; ``go_on`` gives them to others."""
        self.places -= places

    def go_on(self) -> None:
        """Send what can be sent now, and in the next turns."""
        turns_left = MOST_IN_A_TURN
        while not (self._stands or self._request) and (message := self.first) is not None:
            if not turns_left:
                self.rest()
                return
            turns_left -= 1
            if message.result.done() and message.chunks is None:
                self.leave(message)
                continue
            if not message.placed:
                if not self.has_places(1):
                    return
                message.placed = True
                self.places += 1
            if message.reservation is None and not self._has_memory(message):
                continue
            message.placed = False  # The place is its entry's from now on.
            if self._take(message):
                self._line.pop(message, None)

    def rest(self) -> None:
        """Have nobody go on until the next turn."""
        self._rests = True
        asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._rests = False
        self._turn_came()

    def _has_memory(self, message: PendingMessage) -> bool:
        """Ask for the memory of the first of the line, which holds its place meanwhile."""
        try:
            request = self._memory.request(message.needs_bytes)
        except MemoryReserveError as error:
            self._refuse(message, error)
            return False
        if request.done:
            message.reservation = request.result()
            return True
        self._request = request
        self._waking = asyncio.get_running_loop().create_task(self._wait(request))
        return False

    async def _wait(self, request: MemoryWaiter) -> None:
        await request.wait()
        if request is not self._request:
            return
        self._request = None
        message = next(iter(self._line))  # Had it left, its request would have been withdrawn.
        try:
            message.reservation = request.result()
        except MemoryReserveError as error:
            self._refuse(message, error)
        self.go_on()

    def _refuse(self, message: PendingMessage, error: MemoryReserveError) -> None:
        self.leave(message)
        closed = isinstance(error, MemoryReserveClosedError)
        message.fail(AlreadyClosed(_CLOSED) if closed else MemoryBufferIsFullError(str(error)))

    # -- leaving ------------------------------------------------------------------------------

    def leave(self, message: PendingMessage) -> bool:
        """Take a message out of the line; false if it is not in it. It holds nothing then."""
        if message not in self._line:
            return False
        if self._request is not None and self.first is message:
            # What waits for the answer sees that it is not wanted any more, and ends.
            request, self._request = self._request, None
            self._memory.abandon(request)
        del self._line[message]
        self.places -= message.placed
        message.placed = False
        message.release()
        return True

    def begin_with(self, messages: Sequence[PendingMessage]) -> None:
        """Let messages that have their places and memory stand before all others, and go on."""
        if self._request is not None:
            # It is for the first of before, who asks again in its turn: these hold what it waits
            # for, and an answer would be taken for one of them.
            request, self._request = self._request, None
            self._memory.abandon(request)
        for message in messages:
            message.placed = True
        self._line = OrderedDict.fromkeys((*messages, *self._line))
        self.go_on()

    def __iter__(self) -> Iterator[PendingMessage]:
        return iter(tuple(self._line))
