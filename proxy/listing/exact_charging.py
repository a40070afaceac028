"""Charging of topic lists' memory by the true size of an answer (topicListSizeEstimate ``exact``).

Memory is reserved before the request is forwarded; the length field of the broker's answer, known
before the body is read, settles the amount. If a larger amount would have to wait, the body is
drained: no connection is ever blocked by a wait for memory. Then the request is repeated after the
true size is granted or, in profile pulsar, the client is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.memory.size_estimate import (
    FIRST_ESTIMATE_BYTES,
    ResultHolder,
    TopicListSizeResultCache,
)
from proto.frames import LARGE_FRAME_BYTES, LENGTH_FIELD_BYTES
from proxy.errors import not_in_time, too_large
from server.connection.request_errors import UnansweredRequestError

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer
    from server.connection.request_errors import RequestError

HEAP_FIRST = (LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY)
DIRECT_FIRST = (LimitType.DIRECT_MEMORY, LimitType.HEAP_MEMORY)
"""Order of reserving: only direct memory waits for clients' sockets, and no heap is held
meanwhile."""


class ExactCharging:
    """Charging that reserves memory first, and corrects it to the answer's announced size.

    It never waits for memory while an answer's body is being received.

    Args:
        limiter: The proxy's limiter.
        patient: Heap is acquired last, a request whose answer finds no memory is repeated, and an
            answer above a limit is refused. Otherwise (profile pulsar) heap is held during the wait
            for direct memory, the former request is refused, the latter left unanswered.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, *, patient: bool) -> None:
        self._limiter = limiter
        self.reuses_answers = self._patient = patient
        self._sizes = TopicListSizeResultCache()

    def charge(self, request: pb.CommandGetTopicsOfNamespace, owner: SharedOwner) -> _ExactCharge:
        """Create the charge for one broker request."""
        return _ExactCharge(self._limiter, owner, self._holder(request), patient=self._patient)

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return the size in bytes of the last answer to such a request; None before the first."""
        return self._holder(request).last_size_bytes

    def _holder(self, request: pb.CommandGetTopicsOfNamespace) -> ResultHolder:
        # Filtered lists (by pattern, hash or plug-in) give no estimate for the whole list.
        filtered = request.HasField("topics_pattern") or request.HasField("topics_hash")
        filtered = filtered or len(request.properties) > 0
        return self._sizes.holder((request.namespace, request.mode, filtered))


class _ExactCharge:
    """The heap and direct memory, of equal size, that is charged for one broker request.

    See proxy.listing.charging.Charge.
    """

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        owner: SharedOwner,
        holder: ResultHolder,
        *,
        patient: bool,
    ) -> None:
        self._limiter = limiter
        self._owner = owner
        self._holder = holder
        self._patient = patient
        # An answer arriving without announcement is smaller than the least reservation.
        self._size_bytes = max(holder.last_size_bytes or FIRST_ESTIMATE_BYTES, LARGE_FRAME_BYTES)
        self._held: dict[LimitType, MemoryPermit] = {}
        self._short_of: LimitType | None = None
        self._too_large: tuple[PermitTooLargeError, LimitType] | None = None

    async def reserve(self, *, confirmation: bool) -> None:
        if confirmation:
            self._size_bytes = LARGE_FRAME_BYTES  # A larger answer is announced.
        for limit_type in DIRECT_FIRST if self._patient else HEAP_FIRST:
            try:
                self._held[limit_type] = await self._limiter.acquire(
                    limit_type, self._size_bytes, None, self._owner
                )
            except PermitAcquireError as error:
                raise not_in_time(limit_type, error) from None
            except PermitTooLargeError as error:
                raise self._oversized(error, limit_type) from None

    def admit(self, total_size: int) -> bool:
        """Return True if the memory for an announced answer is granted without waiting."""
        size_bytes = total_size - LENGTH_FIELD_BYTES
        self._too_large = None
        lacking = [one for one in self._held if not self._fits(one, size_bytes)]
        self._short_of = lacking[0] if lacking else None
        return not lacking

    def _fits(self, limit_type: LimitType, size_bytes: int) -> bool:
        permit = self._held[limit_type]
        if permit.size >= size_bytes:
            return True
        try:
            grown = self._limiter.try_update(permit, size_bytes)
        except PermitAcquireError:
            return False
        except PermitTooLargeError as error:
            self._too_large = self._too_large or (error, limit_type)
            return False
        if grown is not None:
            self._held[limit_type] = grown
        return grown is not None

    def declined(self, total_size: int) -> None:
        """Record the size of an answer that was not read, or raise the error for the client."""
        if self._too_large is not None:
            raise self._oversized(*self._too_large)
        self._size_bytes = total_size - LENGTH_FIELD_BYTES
        self._holder.update_size(self._size_bytes)
        if not self._patient and self._short_of is not None:
            raise not_in_time(self._short_of)

    def _oversized(
        self, error: PermitTooLargeError, limit_type: LimitType
    ) -> RequestError | UnansweredRequestError:
        # A size above a limit would refuse the next request before the broker request, though the
        # namespace may have shrunk, or its pattern may match less.
        self._holder.forget()
        if self._patient:
            return too_large(error, limit_type)
        return UnansweredRequestError(str(error))

    async def settle(self, answer: TopicsAnswer, *, charged: bool) -> None:
        """Release the reserved memory that exceeds the answer's true size; never waits."""
        self._holder.update_size(answer.command_bytes)
        if charged:
            return
        for limit_type, permit in self._held.items():
            settled = self._limiter.try_update(permit, min(answer.command_bytes, permit.size))
            self._held[limit_type] = settled or permit
        del self._held[LimitType.DIRECT_MEMORY]

    def release(self) -> None:
        for permit in self._held.values():
            self._limiter.release(permit)
        self._held.clear()
