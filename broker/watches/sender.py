"""Sending of answers and updates to the client of a watch, within the limit on direct memory.

If no permit is granted, it is requested again with growing delays: an answer or update may be late,
but is never dropped (upstream: TopicListService, with endless retries).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

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

    from broker.watches.context import WatchContext
    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.sets.encoded_names import EncodedNames
    from broker.watches.update_permit import SetUpdate
    from limiter.backoff import Backoff
    from server.connection.served_connection import ServedConnection

logger = logging.getLogger(__name__)


_ENTRY_BYTES = 4
"""Most bytes of tag and length of a name in an answer."""
_ENVELOPE_BYTES = 64
"""Most bytes around the names of an answer."""
SMALL_UPDATE_BYTES = 16_384
"""Largest update copied to every watcher past the queue; larger updates share bytes."""


class WatchSender:
    """Sends answers and updates to the client of one watch.

    Args:
        context: Shared by all watches.
        cnx: The watcher's connection.
        backoff: Delays between requests for a permit, shared by all watchers of the connection.
        watcher_id: The id that the client chose for its watch.
        namespace: ``tenant/namespace``.

    Attributes:
        closed: True after the watch ended; sending stops.
    """

    __slots__ = ("_context", "_namespace", "backoff", "closed", "cnx", "watcher_id")

    def __init__(
        self,
        context: WatchContext,
        cnx: ServedConnection,
        backoff: Backoff,
        watcher_id: int,
        namespace: str,
    ) -> None:
        self._context = context
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
        """Queue the answer to a request for a watch, once memory for the answer is granted.

        Memory for it is acquired before the names are encoded.

        Args:
            request_id: The id that the client chose for its request.
            names: The names to send: a version, or empty for an up-to-date client.
            encoded: Encodes the names, once for all recipients.
            topics_hash: Hash of all names in the set.

        Raises:
            PermitTooLargeError: The answer is larger than the limit for direct memory.
            RequestError: The answer is larger than a frame may be.
        """
        # An empty answer shares no bytes.
        shared = names if len(names) else (self, request_id)
        size_bytes = names.name_bytes + _ENTRY_BYTES * len(names) + _ENVELOPE_BYTES
        release = await self._acquire(shared, size_bytes)
        if release is None:
            return
        try:
            sent = await encoded(names)
            answer = watch_success(request_id, self.watcher_id, sent.parts, topics_hash)
            self._context.answers.check_size(answer)
            answer = await self._context.answers.owned(answer)
        except BaseException:
            release()
            raise
        paid_bytes = answer.command_bytes if self._context.memory.pays else 0
        # The entry keeps the encoded names for sharing with later recipients.
        private = self._context.answers.private_buffers
        on_left = release if private else partial(_release, release, sent)
        self.cnx.enqueue(answer.buffers, answer.size, on_left, paid_bytes)

    def send_at_once(self, update: SetUpdate) -> bool:
        """Send an update if this is possible without waiting; return False otherwise.

        It is not possible if direct memory or the connection's outbound buffer is full.

        Bytes accepted by the kernel immediately are covered by the change's permit. Queued bytes
        are held by the connection, and a non-reading peer blocks further requests for memory.
        """
        permit, context, command = update.permit, self._context, update.command
        if (
            permit is not None
            and command.body_bytes <= SMALL_UPDATE_BYTES
            and permit.acquire(context.memory, self._namespace)
            and permit.send(self.cnx, command.frame(self.watcher_id))
        ):
            context.totals.updates += 1
            return True
        return self.cnx.writable and self.send_alone(update)

    def send_alone(self, update: SetUpdate) -> bool:
        """Queue an update if direct memory for it is free; return False otherwise."""
        size_bytes = command_bytes(*update.command.buffers(self.watcher_id))
        memory = self._context.memory
        try:
            release = memory.direct_at_once(update, size_bytes, self.cnx, self._namespace)
        except PermitTooLargeError:
            return False
        if release is not None:
            self._enqueue(update, release)
        return release is not None

    async def send(self, update: SetUpdate) -> None:
        """Queue an update once direct memory for it is granted.

        An update larger than the limit closes the connection.
        """
        size_bytes = command_bytes(*update.command.buffers(self.watcher_id))
        try:
            release = await self._acquire(update, size_bytes)
        except PermitTooLargeError as error:
            # The client would be out of date for ever; a new watch reports the reason.
            logger.warning("closing %s: its update cannot be sent: %s", self.cnx.peer, error)
            self.cnx.close()
            return
        if release is not None:
            self._enqueue(update, release)

    def _enqueue(self, update: SetUpdate, release: Callable[[], object]) -> None:
        buffers = update.command.buffers(self.watcher_id)
        self._context.totals.updates += 1
        paid_bytes = command_bytes(*buffers) if self._context.memory.pays else 0
        self.cnx.enqueue(buffers, sum(map(len, buffers)), release, paid_bytes)

    async def _acquire(self, key: Hashable, size_bytes: int) -> Callable[[], object] | None:
        """Wait for direct memory; return the function that releases it, or None if the watch ends.

        A refused request for memory is repeated until it is granted.
        """
        context = self._context
        while not self.closed:
            try:
                release = await context.memory.direct(key, size_bytes, self.cnx, self._namespace)
            except (PermitAcquireCancelledError, PermitAcquireClosedError):
                return None
            except PermitAcquireError:
                context.totals.retries += 1
                await clock_sleep(context.clock, self.backoff.next())
                continue
            self.backoff.reset()
            if not self.closed:
                return release
            release()
        return None


def _release(release: Callable[[], object], _: EncodedNames) -> None:
    release()
