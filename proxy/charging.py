"""What a topic list costs on its way through the proxy, and when that is charged.

``exact``: memory is reserved before the request is forwarded; the length field of the broker's
answer, known before the body is read, settles the amount. If the larger amount would have to
wait, the body is drained, and the broker is asked again once the true size is granted: no
connection is ever held up by a wait for memory.

``last`` and ``proposal``: as shipped. The estimate is reserved, the whole answer is read, and
only then the amount grows to the names' estimate, and direct memory is asked for.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from client.errors import AnswerDeclinedError
from limiter.dual import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.estimate import (
    FIRST_ESTIMATE_BYTES,
    PROPOSAL_ESTIMATE_BYTES,
    SizeEstimate,
    TopicListSizeResultCache,
    estimate_topic_list_bytes,
)
from proto.frames import LARGE_FRAME_BYTES
from proxy.errors import DIRECT_LIMIT_EXCEEDED, HEAP_LIMIT_EXCEEDED, RequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from proto.topic_listing import TopicsAnswer
    from proxy.flight import Flight

MAX_ASKS = 5
"""How often the broker is asked for a list that grows faster than memory is granted."""
_FIRST_LENGTH_FIELD_BYTES = 4


class Charging(Protocol):
    """Fetches a flight's answer and charges for it."""

    def charged(
        self, flight: Flight
    ) -> AbstractAsyncContextManager[tuple[TopicsAnswer, MemoryPermit]]:
        """Yield the answer and the direct permit, which the block hands over.

        Heap is held until the block ends. The flight owns what is held, so that
        ``limiter.cancel_owner(flight)`` gives it back at any wait.

        Raises:
            RequestError: Memory was not granted.
            PulsarClientError: The broker did not answer, or refused.
        """


class ShippedCharging:
    """PIP-442 as shipped in LookupProxyHandler."""

    def __init__(self, limiter: AsyncDualMemoryLimiter, policy: SizeEstimate) -> None:
        self._limiter = limiter
        self._policy = policy
        self._sizes = TopicListSizeResultCache()

    @asynccontextmanager
    async def charged(self, flight: Flight) -> AsyncIterator[tuple[TopicsAnswer, MemoryPermit]]:
        """See Charging.charged."""
        holder = self._sizes.holder((flight.request.namespace, flight.request.mode))
        remembers = self._policy is SizeEstimate.LAST
        try:
            reserved = await holder.size() if remembers else PROPOSAL_ESTIMATE_BYTES
            heap = await self._heap(reserved, flight)
            try:
                answer = await flight.ask(None)
                actual = self._actual_bytes(answer)
                holder.update_size(actual)
                heap = await self._grow(heap, actual)
                direct = await self._direct(answer.command_bytes, flight)
                yield answer, direct
            finally:
                self._limiter.release(heap)
        finally:
            holder.reset_if_initializing()

    def _actual_bytes(self, answer: TopicsAnswer) -> int:
        """Return the estimate of the names received, as upstream charges it."""
        if self._limiter.statistics().heap.max_permits <= 0:
            return answer.command_bytes
        return estimate_topic_list_bytes(answer.decoded().topics)

    async def _heap(self, size_bytes: int, flight: Flight) -> MemoryPermit:
        try:
            return await self._limiter.acquire(LimitType.HEAP_MEMORY, size_bytes, None, flight)
        except (PermitAcquireError, PermitTooLargeError):
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None

    async def _grow(self, heap: MemoryPermit, size_bytes: int) -> MemoryPermit:
        try:
            return await self._limiter.update(heap, size_bytes)
        except (PermitAcquireError, PermitTooLargeError):
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None

    async def _direct(self, size_bytes: int, flight: Flight) -> MemoryPermit:
        try:
            return await self._limiter.acquire(LimitType.DIRECT_MEMORY, size_bytes, None, flight)
        except (PermitAcquireError, PermitTooLargeError):
            raise RequestError(pb.TooManyRequests, DIRECT_LIMIT_EXCEEDED) from None


class ExactCharging:
    """Reserve first, settle by the announced length, never wait with a body half read."""

    def __init__(self, limiter: AsyncDualMemoryLimiter) -> None:
        self._limiter = limiter
        self._sizes = TopicListSizeResultCache()

    @asynccontextmanager
    async def charged(self, flight: Flight) -> AsyncIterator[tuple[TopicsAnswer, MemoryPermit]]:
        """See Charging.charged."""
        request = flight.request
        filtered = request.HasField("topics_pattern") or request.HasField("topics_hash")
        holder = self._sizes.holder((request.namespace, request.mode, filtered))
        # What is not announced before its body is smaller than the least that is reserved.
        size_bytes = max(holder.last_size_bytes or FIRST_ESTIMATE_BYTES, LARGE_FRAME_BYTES)
        for _ in range(MAX_ASKS):
            reservation = _Reservation(self._limiter, flight)
            try:
                await reservation.reserve(size_bytes)
                answer = await flight.ask(reservation.admit)
                holder.update_size(answer.command_bytes)
                reservation.settle(answer.command_bytes)
                yield answer, reservation.hand_over_direct()
            except AnswerDeclinedError as declined:
                size_bytes = declined.total_size - _FIRST_LENGTH_FIELD_BYTES
                if self._can_ever_hold(size_bytes):
                    holder.update_size(size_bytes)
            else:
                return
            finally:
                reservation.release()
        raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED)

    def _can_ever_hold(self, size_bytes: int) -> bool:
        """Whether a size is worth remembering.

        One above a limit would refuse the next request before the broker is asked, though the
        namespace may have shrunk, or that request's pattern may keep less.
        """
        limits = self._limiter.statistics()
        most = (limits.heap.max_permits, limits.direct.max_permits)
        return all(limit <= 0 or size_bytes <= limit for limit in most)


class _Reservation:
    """Heap and direct memory of one attempt, of the same size."""

    def __init__(self, limiter: AsyncDualMemoryLimiter, flight: Flight) -> None:
        self._limiter = limiter
        self._flight = flight
        self._held: dict[LimitType, MemoryPermit] = {}

    async def reserve(self, size_bytes: int) -> None:
        """Wait for both, heap first."""
        for limit_type, refusal in _REFUSALS.items():
            try:
                self._held[limit_type] = await self._limiter.acquire(
                    limit_type, size_bytes, None, self._flight
                )
            except PermitAcquireError:
                raise RequestError(pb.TooManyRequests, refusal) from None
            except PermitTooLargeError as error:
                raise _too_large(error, limit_type) from None

    def admit(self, total_size: int) -> bool:
        """Decide on an announced answer: take it if its memory is there without waiting."""
        try:
            return self._grow(total_size - _FIRST_LENGTH_FIELD_BYTES)
        except (PermitAcquireError, PermitTooLargeError):
            # The next attempt asks for the true size and gets the proper refusal.
            return False

    def _grow(self, size_bytes: int) -> bool:
        for limit_type, permit in self._held.items():
            if permit.size < size_bytes:
                grown = self._limiter.try_update(permit, size_bytes)
                if grown is None:
                    return False
                self._held[limit_type] = grown
        return True

    def settle(self, size_bytes: int) -> None:
        """Give back what was reserved beyond the true size; shrinking never waits."""
        for limit_type, permit in self._held.items():
            settled = self._limiter.try_update(permit, min(size_bytes, permit.size))
            self._held[limit_type] = settled or permit

    def hand_over_direct(self) -> MemoryPermit:
        """Return the direct permit, which is the caller's from now on."""
        return self._held.pop(LimitType.DIRECT_MEMORY)

    def release(self) -> None:
        """Give back what is still held."""
        for permit in self._held.values():
            self._limiter.release(permit)
        self._held.clear()


_REFUSALS = {
    LimitType.HEAP_MEMORY: HEAP_LIMIT_EXCEEDED,
    LimitType.DIRECT_MEMORY: DIRECT_LIMIT_EXCEEDED,
}
_KEYS = {
    LimitType.HEAP_MEMORY: "maxTopicListInFlightHeapMemSizeMB",
    LimitType.DIRECT_MEMORY: "maxTopicListInFlightDirectMemSizeMB",
}


def _too_large(error: PermitTooLargeError, limit_type: LimitType) -> RequestError:
    return RequestError(
        pb.TooManyRequests,
        f"the topic list of {error.requested} bytes is larger than the proxy's limit of "
        f"{error.limit} bytes: raise {_KEYS[limit_type]}",
    )
