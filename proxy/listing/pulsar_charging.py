"""Charging as shipped: an estimate is reserved, the whole answer read, then the names charged.

Answers larger than a limit. Profile floodgate: refused every time, with size, limit and key.
Profile pulsar, read in upstream's source and tried on the limiter classes of 4.2.4, but not
observed on a proxy:

- the estimate is too large: nothing is answered. Upstream's limiter throws where nobody looks;
- the charge for the names is: ServiceNotReady with Java's text. The size is remembered, so the
  next request's estimate is too large, and no request is answered any more;
- direct memory is: nothing is answered, every time.

A wait that ends in a timeout, or finds the queue full, is TooManyRequests at each of the three.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.errors import AnswerDeclinedError
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.memory.size_estimate import (
    PROPOSAL_ESTIMATE_BYTES,
    SizeEstimate,
    SizeGuess,
    TopicListSizeResultCache,
    charged_bytes,
    estimate_topic_list_bytes,
)
from proxy.errors import not_in_time, too_large
from server.connection.refusal_texts import illegal_argument_text
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from proto.topics_response import TopicsAnswer
    from proxy.listing.flight import Flight

_FIRST_LENGTH_FIELD_BYTES = 4


class ShippedCharging:
    """``last`` and ``proposal``; see proxy.listing.exact_charging.Charging.

    Args:
        limiter: The proxy's.
        policy: Which of the two.
        as_shipped: Profile pulsar.

    Source: upstream LookupProxyHandler.internalPerformGetTopicsOfNamespace (PIP-442).
    """

    reuses_answers = False

    def __init__(
        self, limiter: AsyncDualMemoryLimiter, policy: SizeEstimate, *, as_shipped: bool
    ) -> None:
        self._limiter = limiter
        self._policy = policy
        self._as_shipped = as_shipped
        self._sizes = TopicListSizeResultCache()

    @asynccontextmanager
    async def charged(self, flight: Flight) -> AsyncIterator[tuple[TopicsAnswer, MemoryPermit]]:
        """See Charging.charged."""
        holder = self._sizes.holder((flight.request.namespace, flight.request.mode))
        guess = SizeGuess(holder, anyone_resets=self._as_shipped)
        charge = _Charge(self._limiter, flight, guess, as_shipped=self._as_shipped)
        try:
            await charge.estimate(await self._first(guess))
            answer = await flight.ask(None if self._as_shipped else charge.admit)
            await charge.names(self._charged_bytes(answer))
            yield answer, await charge.direct(answer.command_bytes)
        except AnswerDeclinedError:
            raise charge.declined() from None
        finally:
            charge.release()
            guess.failed()

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """See Charging.expected_bytes."""
        return self._sizes.holder((request.namespace, request.mode)).last_size_bytes

    async def _first(self, guess: SizeGuess) -> int:
        if self._policy is SizeEstimate.PROPOSAL:
            return PROPOSAL_ESTIMATE_BYTES
        return await guess.size()

    def _charged_bytes(self, answer: TopicsAnswer) -> int:
        """Return what the names received cost; without a limit they are not looked at."""
        if self._limiter.statistics().heap.max_permits <= 0:
            return answer.command_bytes
        topics = answer.decoded().topics
        return charged_bytes(self._policy, estimate_topic_list_bytes(topics), len(topics))


class _Charge:
    """What one request holds on its way, and how it is refused at each step."""

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        flight: Flight,
        guess: SizeGuess,
        *,
        as_shipped: bool,
    ) -> None:
        self._limiter = limiter
        self._flight = flight
        self._guess = guess
        self._as_shipped = as_shipped
        self._heap: MemoryPermit | None = None
        self._exceeded: tuple[PermitTooLargeError, LimitType] | None = None

    async def estimate(self, size_bytes: int) -> None:
        """Hold heap for the estimate."""
        self._heap = await self._acquire(LimitType.HEAP_MEMORY, size_bytes)

    async def names(self, size_bytes: int) -> None:
        """Hold heap for the names received instead of the estimate."""
        if self._heap is None:
            raise RuntimeError("the names come after the estimate")
        self._guess.actual(size_bytes)
        if self._as_shipped:
            # Upstream gives the estimate back as soon as it has asked for more: who waits to
            # grow holds nothing meanwhile. (A permit exchanged by then is empty.)
            asyncio.get_running_loop().call_soon(self._limiter.release, self._heap)
        try:
            self._heap = await self._limiter.update(self._heap, size_bytes)
        except PermitAcquireError:
            raise not_in_time(LimitType.HEAP_MEMORY) from None
        except PermitTooLargeError as error:
            if self._as_shipped:
                raise RequestError(pb.ServiceNotReady, illegal_argument_text(error)) from None
            raise self._too_large(error, LimitType.HEAP_MEMORY) from None

    async def direct(self, size_bytes: int) -> MemoryPermit:
        """Return direct memory for the answer."""
        return await self._acquire(LimitType.DIRECT_MEMORY, size_bytes)

    async def _acquire(self, limit_type: LimitType, size_bytes: int) -> MemoryPermit:
        try:
            return await self._limiter.acquire(limit_type, size_bytes, None, self._flight.owner)
        except PermitAcquireError:
            raise not_in_time(limit_type) from None
        except PermitTooLargeError as error:
            if self._as_shipped:
                raise UnansweredRequestError(str(error)) from None
            raise self._too_large(error, limit_type) from None

    def admit(self, total_size: int) -> bool:
        """Read no body that no limit allows for: its names cost more than their bytes."""
        size_bytes, limits = total_size - _FIRST_LENGTH_FIELD_BYTES, self._limiter.statistics()
        for limit_type, budget in (
            (LimitType.HEAP_MEMORY, limits.heap),
            (LimitType.DIRECT_MEMORY, limits.direct),
        ):
            if 0 < budget.max_permits < size_bytes:
                self._exceeded = (PermitTooLargeError(size_bytes, budget.max_permits), limit_type)
                return False
        return True

    def declined(self) -> RequestError:
        """Return the refusal of the answer that was not admitted."""
        if self._exceeded is None:
            raise RuntimeError("no answer was declined")
        return self._too_large(*self._exceeded)

    def _too_large(self, error: PermitTooLargeError, limit_type: LimitType) -> RequestError:
        # The namespace may have shrunk when it is asked for again: that is no estimate.
        self._guess.forget()
        return too_large(error, limit_type)

    def release(self) -> None:
        """Give back the heap."""
        if self._heap is not None:
            self._limiter.release(self._heap)
