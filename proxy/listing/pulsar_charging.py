"""Charging of topic lists' memory as by Pulsar's proxy: an estimate, then the size of the names.

For the size estimates ``last`` and ``proposal``.

Answers larger than a limit. Profile floodgate: refused every time, with size, limit and key.
Profile pulsar, read in upstream's source and tried on the limiter classes of 4.2.4, but not
observed on a proxy:

- the estimate is too large: no answer. Upstream's limiter throws an unhandled exception;
- the charge for the names is too large: ServiceNotReady with Java's text. The size is remembered,
  so that all later estimates are too large, and later requests stay unanswered;
- direct memory is too large: no answer, every time.

A wait ending in a timeout, or finding the queue full, is TooManyRequests at each of the three.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.memory.size_estimate import (
    PROPOSAL_ESTIMATE_BYTES,
    ResultHolder,
    SizeEstimate,
    SizeGuess,
    TopicListSizeResultCache,
    charged_bytes,
    estimate_topic_list_bytes,
)
from proto.frames import LENGTH_FIELD_BYTES
from proxy.errors import not_in_time, too_large
from server.connection.request_errors import (
    RequestError,
    UnansweredRequestError,
    illegal_argument_text,
)
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer


class PulsarCharging:
    """Charging that reserves heap for an estimate, and then charges the received names.

    Args:
        limiter: The proxy's limiter.
        policy: ``last`` or ``proposal``.
        mended: Whether an answer above a limit is refused on announcement, and the estimate is held
            until the names are granted. Otherwise all is as upstream.

    Source: upstream LookupProxyHandler.internalPerformGetTopicsOfNamespace (PIP-442).
    """

    def __init__(
        self, limiter: AsyncDualMemoryLimiter, policy: SizeEstimate, *, mended: bool
    ) -> None:
        self.reuses_answers = False
        self._limiter = limiter
        self._policy = policy
        self._charge = _PulsarCharge if mended else _UpstreamCharge
        self._sizes = TopicListSizeResultCache()

    def charge(self, request: pb.CommandGetTopicsOfNamespace, owner: SharedOwner) -> _PulsarCharge:
        """Create the charge for one broker request."""
        holder = self._sizes.holder((request.namespace, request.mode))
        return self._charge(self._limiter, owner, holder, self._policy)

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return the size in bytes of the last answer to such a request; None before the first."""
        return self._sizes.holder((request.namespace, request.mode)).last_size_bytes


class _PulsarCharge:
    """The memory charged for one broker request: heap first, then direct memory; see Charge.

    See Charge.
    """

    anyone_resets = False
    """See SizeGuess."""

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        owner: SharedOwner,
        holder: ResultHolder,
        policy: SizeEstimate,
    ) -> None:
        self._limiter = limiter
        self._owner = owner
        self._policy = policy
        self._guess = SizeGuess(holder, anyone_resets=self.anyone_resets)
        self._heap: MemoryPermit | None = None
        self._exceeded: tuple[PermitTooLargeError, LimitType] | None = None

    async def reserve(self, *, confirmation: bool) -> None:
        proposal = self._policy is SizeEstimate.PROPOSAL
        size_bytes = PROPOSAL_ESTIMATE_BYTES if proposal else await self._guess.size()
        self._heap = await self._acquire(LimitType.HEAP_MEMORY, size_bytes)

    def admit(self, total_size: int) -> bool:
        """Return False for an answer larger than a limit: its names cost more than its bytes."""
        size_bytes, limits = total_size - LENGTH_FIELD_BYTES, self._limiter.statistics()
        for limit_type, budget in (
            (LimitType.HEAP_MEMORY, limits.heap),
            (LimitType.DIRECT_MEMORY, limits.direct),
        ):
            if 0 < budget.max_permits < size_bytes:
                self._exceeded = (PermitTooLargeError(size_bytes, budget.max_permits), limit_type)
                return False
        return True

    def declined(self, total_size: int) -> None:
        if self._exceeded is not None:
            raise self._too_large(*self._exceeded)

    async def settle(self, answer: TopicsAnswer, *, charged: bool) -> None:
        """Change the heap charge from an estimate to the names' size; acquire direct memory."""
        if self._heap is None:
            raise RuntimeError("settle was called before reserve")
        size_bytes = await self._charged_bytes(answer)
        self._guess.actual(size_bytes)
        self._heap = await self._grown(self._heap, size_bytes)
        await self._acquire(LimitType.DIRECT_MEMORY, answer.command_bytes)

    async def _charged_bytes(self, answer: TopicsAnswer) -> int:
        """Return the bytes of heap to charge for the received names.

        Without a limit the names are not read.
        """
        if self._limiter.statistics().heap.max_permits <= 0:
            return answer.command_bytes
        estimated_bytes = names = 0
        async for piece in in_turns(answer.pieces()):
            estimated_bytes += estimate_topic_list_bytes(piece.topics)
            names += len(piece.topics)
        return charged_bytes(self._policy, estimated_bytes, names)

    async def _grown(self, heap: MemoryPermit, size_bytes: int) -> MemoryPermit:
        try:
            return await self._limiter.update(heap, size_bytes)
        except PermitAcquireError as error:
            raise not_in_time(LimitType.HEAP_MEMORY, error) from None
        except PermitTooLargeError as error:
            raise self._names_too_large(error) from None

    async def _acquire(self, limit_type: LimitType, size_bytes: int) -> MemoryPermit:
        try:
            return await self._limiter.acquire(limit_type, size_bytes, None, self._owner)
        except PermitAcquireError as error:
            raise not_in_time(limit_type, error) from None
        except PermitTooLargeError as error:
            raise self._too_large(error, limit_type) from None

    def _names_too_large(self, error: PermitTooLargeError) -> RequestError | UnansweredRequestError:
        return self._too_large(error, LimitType.HEAP_MEMORY)

    def _too_large(
        self, error: PermitTooLargeError, limit_type: LimitType
    ) -> RequestError | UnansweredRequestError:
        # The namespace may have shrunk by the next request: the size is no estimate.
        self._guess.forget()
        return too_large(error, limit_type)

    def release(self) -> None:
        """Release the heap, and wake requests that wait for the first answer's size."""
        if self._heap is not None:
            self._limiter.release(self._heap)
        self._guess.failed()


class _UpstreamCharge(_PulsarCharge):
    """The memory charged for one broker request, as by upstream's proxy if it must grow."""

    anyone_resets = True

    def admit(self, total_size: int) -> bool:
        """Return True, since upstream's proxy reads every answer."""
        return True

    async def _grown(self, heap: MemoryPermit, size_bytes: int) -> MemoryPermit:
        # Upstream releases the estimate right after requesting more: a request waiting to grow
        # holds no memory meanwhile. (A permit exchanged by then is empty.)
        asyncio.get_running_loop().call_soon(self._limiter.release, heap)
        return await super()._grown(heap, size_bytes)

    def _names_too_large(self, error: PermitTooLargeError) -> RequestError:
        return RequestError(pb.ServiceNotReady, illegal_argument_text(error))

    def _too_large(
        self, error: PermitTooLargeError, limit_type: LimitType
    ) -> UnansweredRequestError:
        return UnansweredRequestError(str(error))
