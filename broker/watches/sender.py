"""Sends one watcher its answers and updates, each under a permit for direct memory.

What is not granted is asked for again, later each time: an answer or an update may come late, it
is never left out (upstream: TopicListService, which retries without end).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker.errors import too_large_for_a_frame
from limiter.clock import clock_sleep
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitTooLargeError,
)
from proto.watch_commands import command_bytes, watch_success

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.sets.totals import WatchTotals
    from broker.watches.sets.watched_sets import EncodedNames
    from broker.watches.updates.set_update import SetUpdate
    from limiter.backoff import Backoff
    from limiter.clock import Clock
    from limiter.memory.response_memory import ResponseMemory
    from proto.topics_response import TopicsResponse
    from server.connection.served_connection import ServedConnection

logger = logging.getLogger(__name__)


_ENTRY_BYTES = 4
"""Tag and length of a name in an answer, at most."""
_ENVELOPE_BYTES = 64
"""What stands around the names, at most."""
SMALL_UPDATE_BYTES = 16_384
"""Updates up to this size share one payment, and go past the queue."""


@dataclass(frozen=True, slots=True)
class OutletParts:
    """What every outlet works with.

    Attributes:
        max_frame_bytes: An answer's frame at most; 0 is unlimited.
        private_buffers: Whether every answer is put together into bytes of its own.
    """

    memory: ResponseMemory
    totals: WatchTotals
    clock: Clock
    max_frame_bytes: int
    private_buffers: bool


class WatchOutlet:
    """One watcher's way out.

    Args:
        parts: What all have in common.
        cnx: The connection it is on.
        backoff: The connection's: shared by all that waits for permits on it.
        watcher_id: The client's.
        namespace: ``tenant/namespace``.
    """

    __slots__ = ("_namespace", "_parts", "backoff", "closed", "cnx", "watcher_id")

    def __init__(
        self,
        parts: OutletParts,
        cnx: ServedConnection,
        backoff: Backoff,
        watcher_id: int,
        namespace: str,
    ) -> None:
        self._parts = parts
        self.backoff = backoff
        self._namespace = namespace
        self.cnx = cnx
        self.watcher_id = watcher_id
        self.closed = False

    async def send_success(
        self,
        request_id: int,
        names: SortedNames,
        encoded: Callable[[SortedNames], Awaitable[EncodedNames]],
        topics_hash: str,
    ) -> None:
        """Queue the answer to a watch; its memory is held before it is made.

        Args:
            request_id: The client's.
            names: What is sent: a version, or nothing where the client knows it.
            encoded: Makes the names' bytes, shared with others who are sent them.
            topics_hash: The version's.

        Raises:
            PermitTooLargeError: It is larger than the limit for direct memory.
            RequestError: It is larger than a frame may be.
        """
        # An empty answer shares nothing: its few bytes are its own.
        shared = names if len(names) else (self, request_id)
        size_bytes = names.name_bytes + _ENTRY_BYTES * len(names) + _ENVELOPE_BYTES
        give_back = await self._direct(shared, size_bytes)
        if give_back is None:
            return
        try:
            sent = await encoded(names)
            answer = self._success(request_id, sent, topics_hash)
        except BaseException:
            give_back()
            raise
        paid_bytes = answer.command_bytes if self._parts.memory.pays else 0
        self.cnx.enqueue(answer.buffers, answer.size, _keeping(sent, give_back), paid_bytes)

    def _success(self, request_id: int, sent: EncodedNames, topics_hash: str) -> TopicsResponse:
        answer = watch_success(request_id, self.watcher_id, sent.parts, topics_hash)
        if answer.size > self._parts.max_frame_bytes > 0:
            raise too_large_for_a_frame(answer.size, self._parts.max_frame_bytes)
        return answer.joined() if self._parts.private_buffers else answer

    def update_through(self, update: SetUpdate) -> bool:
        """Send an update past the queue, if nothing is in it and its memory is to be had now.

        It leaves together with others of its connection, when the payment is told so.
        """
        payment, parts = update.payment, self._parts
        if payment is None or update.command.body_bytes > SMALL_UPDATE_BYTES:
            return False  # Each copy of a large one is paid for by itself.
        if not (payment.paid or payment.pay(parts.memory, self._namespace)):
            return False
        frame = update.command.frame(self.watcher_id)
        if not payment.send(self.cnx, frame):
            return False
        parts.totals.updates += 1
        return True

    def update_at_once(self, update: SetUpdate) -> bool:
        """Queue an update if a permit of its own is to be had without waiting."""
        buffers, memory = update.command.buffers(self.watcher_id), self._parts.memory
        size_bytes = command_bytes(*buffers)
        try:
            give_back = memory.direct_at_once(update, size_bytes, self.cnx, self._namespace)
        except PermitTooLargeError:
            return False
        if give_back is not None:
            self._enqueue_update(buffers, give_back)
        return give_back is not None

    async def update(self, update: SetUpdate) -> None:
        """Queue an update as soon as its permit is granted; one that can never be ends the peer."""
        buffers = update.command.buffers(self.watcher_id)
        try:
            give_back = await self._direct(update, command_bytes(*buffers))
        except PermitTooLargeError as error:
            # It would be in a state of its own for ever; a new watch is told why.
            logger.warning("closing %s: its update cannot be sent: %s", self.cnx.peer, error)
            self.cnx.close()
            return
        if give_back is not None:
            self._enqueue_update(buffers, give_back)

    def _enqueue_update(
        self, buffers: tuple[bytes, bytes], give_back: Callable[[], object]
    ) -> None:
        self._parts.totals.updates += 1
        size_bytes = command_bytes(*buffers)
        paid_bytes = size_bytes if self._parts.memory.pays else 0
        self.cnx.enqueue(buffers, sum(map(len, buffers)), give_back, paid_bytes)

    async def _direct(self, key: Hashable, size_bytes: int) -> Callable[[], object] | None:
        """Return how direct memory is given back; None when nobody wants it any more."""
        parts = self._parts
        while not self.closed:
            try:
                give_back = await parts.memory.direct(key, size_bytes, self.cnx, self._namespace)
            except (PermitAcquireCancelledError, PermitAcquireClosedError):
                return None
            except PermitAcquireError:
                parts.totals.retries += 1
                await clock_sleep(parts.clock, self.backoff.next())
                continue
            self.backoff.reset()
            if not self.closed:
                return give_back
            give_back()
        return None


def _keeping(encoded: EncodedNames, give_back: Callable[[], object]) -> Callable[[], object]:
    """Return what gives memory back and, until then, keeps the encoded names for the others."""
    return partial(_give_back, give_back, encoded)


def _give_back(give_back: Callable[[], object], _: EncodedNames) -> None:
    give_back()
