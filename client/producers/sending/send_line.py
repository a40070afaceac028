"""A producer's queue slots and memory, and the messages waiting for them."""

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
"""Maximum number of messages waiting in a producer's line; a further ``send`` fails."""
MOST_IN_A_TURN = 1_000
"""Maximum number of waiting messages sent in one event-loop iteration."""
BARE_MESSAGE_BYTES = 1_024
"""Memory overhead of a message in bytes, counted if the number of messages has no limit."""
_CLOSED = "the client was closed"


class SendLine:
    """A producer's messages that wait for a queue slot and then for memory, in order.

    Only the first in line requests memory: each producer of a client has one request in the
    controller's queue, so producers alternate regardless of their numbers of sends.

    Args:
        memory: The client's memory limit.
        max_places: Maximum number of messages or chunks without a receipt; 0 for no limit.
        take: Function that sends a message with a slot and memory, or its next chunk. It returns
            whether the message is completely sent or has failed.
        turn_came: Function called in a new event-loop iteration to send the messages postponed to
            it; None for ``go_on``.

    Attributes:
        places: Number of queue slots in use.
        is_held: While True, no waiting message gets a slot or memory.
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
        # A dict with repeatedly deleted front takes ever longer to find its first key.
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
        """True while no waiting message may get a slot or memory."""
        return self.is_held or self._rests

    @property
    def first(self) -> PendingMessage | None:
        """The message that has waited longest, or None."""
        return next(iter(self._line), None)

    def has_places(self, count: int) -> bool:
        """Return True if this many queue slots are free."""
        return not self._max_places or self.places + count <= self._max_places

    # -- entering -----------------------------------------------------------------------------

    def enter(self, message: PendingMessage) -> None:
        """Send a message now, or queue it if it may wait.

        Raises:
            ProducerQueueIsFullError: No slot is free, or earlier messages wait.
            MemoryBufferIsFullError: No memory is free.
            AlreadyClosed: The memory limit was closed with its client.
        """
        # Computed first: an interceptor may have set a value without a size.
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
        """True if all waiting messages have a slot and memory and are sent in the next iteration.

        A chunked message has precedence for freed slots.
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

    # -- admission ----------------------------------------------------------------------------

    def give_back(self, places: int = 1) -> None:
        """Release queue slots; ``go_on`` assigns them to waiting messages."""
        self.places -= places

    def go_on(self) -> None:
        """Send waiting messages while slots and memory are free.

        The work is spread over several event-loop iterations.
        """
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
            message.placed = False  # The slot now belongs to the entry.
            if self._take(message):
                self._line.pop(message, None)

    def rest(self) -> None:
        """Stop sending waiting messages until the next event-loop iteration."""
        self._rests = True
        asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._rests = False
        self._turn_came()

    def _has_memory(self, message: PendingMessage) -> bool:
        """Request memory for the first waiting message; return False unless it has the memory."""
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
        message = next(iter(self._line))  # Still first: leaving withdraws the request.
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
        """Remove a waiting message and release its slot and memory.

        Return False if it does not wait here.
        """
        if message not in self._line:
            return False
        if self._request is not None and self.first is message:
            # ``_wait`` notices the abandoned request, and ends.
            request, self._request = self._request, None
            self._memory.abandon(request)
        del self._line[message]
        self.places -= message.placed
        message.placed = False
        message.release()
        return True

    def begin_with(self, messages: Sequence[PendingMessage]) -> None:
        """Put messages that have a slot and memory before all waiting ones, and go on sending."""
        if self._request is not None:
            # The former first requests again later: the new messages hold the awaited memory, and
            # the answer would go to the wrong message.
            request, self._request = self._request, None
            self._memory.abandon(request)
        for message in messages:
            message.placed = True
        self._line = OrderedDict.fromkeys((*messages, *self._line))
        self.go_on()

    def __iter__(self) -> Iterator[PendingMessage]:
        return iter(tuple(self._line))
