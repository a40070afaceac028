"""Charges for a topic list on its way through the proxy.

``exact``, here: memory is reserved before the request is forwarded; the length field of the
broker's answer, known before the body is read, settles the amount. If the larger amount would
have to wait, the body is drained: no connection is ever held up by a wait for memory. Then the
broker is asked again once the true size is granted or, in profile pulsar, the client refused.

Where an answer to the same is still on its way to clients, the broker is asked whether that is
right (proxy.listing.live_answers): then it is everybody's, and nothing is charged. While that
question is under way those who wait are references of it; but nobody waits for memory while he
is one.

``last`` and ``proposal``: see proxy/listing/pulsar_charging.py.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from client.errors import AnswerDeclinedError, RequestTooLargeError
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.memory.size_estimate import (
    FIRST_ESTIMATE_BYTES,
    ResultHolder,
    TopicListSizeResultCache,
)
from proto.frames import LARGE_FRAME_BYTES
from proxy.errors import not_in_time, too_large
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    import proto.PulsarApi_pb2 as pb
    from proto.topics_response import TopicsAnswer
    from proxy.listing.flight import Flight

MAX_ASKS = 5
"""Most times the broker is asked for a list that grows faster than memory is granted."""
AS_SHIPPED_ORDER = (LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY)
DIRECT_FIRST_ORDER = (LimitType.DIRECT_MEMORY, LimitType.HEAP_MEMORY)
"""Only direct memory waits for clients' sockets: who waits for it must not hold others' heap."""
_FIRST_LENGTH_FIELD_BYTES = 4


class Charging(Protocol):
    """Fetches a flight's answer and charges for it."""

    @property
    def reuses_answers(self) -> bool:
        """True if a flight may end with an answer that is on its way already."""

    def charged(
        self, flight: Flight
    ) -> AbstractAsyncContextManager[tuple[TopicsAnswer, MemoryPermit | None]]:
        """Yield the answer and the direct permit, which the block hands over.

        Without a permit the answer is ``flight.kept``, whose bytes are charged already.

        Heap is held until the block ends. The clients that wait for the flight hold what is held
        for it together (``flight.owner``): when the last one leaves, it is given back at any wait.

        Raises:
            RequestError: Memory was not granted.
            UnansweredRequestError: Profile pulsar: the client gets no answer.
            PulsarClientError: The broker did not answer, or refused.
        """

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""


class ExactCharging:
    """Reserve first, settle by the announced length, never wait with a body half read.

    Args:
        limiter: The proxy's.
        as_shipped: Profile pulsar: an answer whose memory is not there at once is refused.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, *, as_shipped: bool) -> None:
        self._limiter = limiter
        self._as_shipped = as_shipped
        self._order = AS_SHIPPED_ORDER if as_shipped else DIRECT_FIRST_ORDER
        self._sizes = TopicListSizeResultCache()

    @property
    def reuses_answers(self) -> bool:
        """See Charging.reuses_answers."""
        return not self._as_shipped

    @asynccontextmanager
    async def charged(
        self, flight: Flight
    ) -> AsyncIterator[tuple[TopicsAnswer, MemoryPermit | None]]:
        """See Charging.charged."""
        holder = self._holder(flight.request)
        # What is not announced before its body is smaller than the least that is reserved.
        size_bytes = max(holder.last_size_bytes or FIRST_ESTIMATE_BYTES, LARGE_FRAME_BYTES)
        for _ in range(MAX_ASKS):
            reservation = _Reservation(self._limiter, flight, self._order)
            try:
                answer = await self._asked(flight, reservation, size_bytes)
                if answer is None:
                    size_bytes = LARGE_FRAME_BYTES  # If more comes, it is announced.
                    continue
                holder.update_size(answer.command_bytes)
                yield answer, reservation.hand_over_direct(answer)
            except AnswerDeclinedError as declined:
                size_bytes = declined.total_size - _FIRST_LENGTH_FIELD_BYTES
                flight.declined = True
                self._declined(reservation, holder, size_bytes)
            except PermitTooLargeError as error:
                raise self._oversized(error, reservation.short_of, holder) from None
            else:
                return
            finally:
                flight.let_go()
                reservation.release()
        raise not_in_time(LimitType.HEAP_MEMORY)

    async def _asked(
        self, flight: Flight, reservation: _Reservation, size_bytes: int
    ) -> TopicsAnswer | None:
        """Ask the broker, or about an answer that is on its way; None if that settled nothing."""
        if flight.answer_in_question() is None:
            await reservation.reserve(size_bytes)
            return await flight.ask(reservation.admit)
        await reservation.reserve(LARGE_FRAME_BYTES)
        # Kept only now: nobody waits for memory while he holds what others may wait for.
        live = flight.keep_newest()
        if live is None:
            return await flight.ask(reservation.admit)
        try:
            answer = await flight.ask(reservation.admit, live.topics_hash)
        except RequestTooLargeError:
            return None  # With the hash it is larger than what the client asked.
        if live.is_confirmed_by(answer):
            return live.answer
        flight.let_go()
        return answer if _is_right_for(flight, answer) else None

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """See Charging.expected_bytes."""
        return self._holder(request).last_size_bytes

    def _holder(self, request: pb.CommandGetTopicsOfNamespace) -> ResultHolder:
        # What a pattern, a hash or a plug-in makes of a list says nothing about the whole list.
        filtered = request.HasField("topics_pattern") or request.HasField("topics_hash")
        filtered = filtered or len(request.properties) > 0
        return self._sizes.holder((request.namespace, request.mode, filtered))

    def _declined(self, reservation: _Reservation, holder: ResultHolder, size_bytes: int) -> None:
        """Remember a size that did not fit; in profile pulsar its request ends here.

        Raises:
            RequestError: The list is larger than a limit, or its memory was not there at once.
            UnansweredRequestError: As shipped, for a list larger than a limit.
        """
        if reservation.too_large is not None:
            raise self._oversized(reservation.too_large, reservation.short_of, holder)
        holder.update_size(size_bytes)
        if self._as_shipped:
            raise not_in_time(reservation.short_of)

    def _oversized(
        self, error: PermitTooLargeError, limit_type: LimitType, holder: ResultHolder
    ) -> RequestError | UnansweredRequestError:
        # A size above a limit would refuse the next request before the broker is asked, though
        # the namespace may have shrunk, or its pattern may keep less.
        holder.forget()
        if self._as_shipped:
            return UnansweredRequestError(str(error))
        return too_large(error, limit_type)


class _Reservation:
    """Heap and direct memory of one attempt, of the same size.

    Args:
        limiter: The proxy's.
        flight: Whose attempt it is.
        order: In which order both are waited for.

    Attributes:
        short_of: The budget that was asked last, or that had not enough for the answer.
        too_large: Why an announced answer can never be held, if so.
    """

    def __init__(
        self, limiter: AsyncDualMemoryLimiter, flight: Flight, order: Sequence[LimitType]
    ) -> None:
        self._limiter = limiter
        self._flight = flight
        self._order = order
        self._held: dict[LimitType, MemoryPermit] = {}
        self.short_of = order[0]
        self.too_large: PermitTooLargeError | None = None

    async def reserve(self, size_bytes: int) -> None:
        """Wait for both.

        Raises:
            RequestError: Not granted in time.
            PermitTooLargeError: ``size_bytes`` exceeds a limit.
        """
        for limit_type in self._order:
            self.short_of = limit_type
            try:
                self._held[limit_type] = await self._limiter.acquire(
                    limit_type, size_bytes, None, self._flight.owner
                )
            except PermitAcquireError:
                raise not_in_time(limit_type) from None

    def admit(self, total_size: int) -> bool:
        """Decide on an announced answer: take it if its memory is there without waiting.

        What is announced is not the word that an older answer is right, so that is let go first.
        It may come in the very turn in which the last client left: then nobody is there to hold it.
        """
        self._flight.let_go()
        if self._flight.abandoned:
            return False
        size_bytes = total_size - _FIRST_LENGTH_FIELD_BYTES
        lacking = [one for one in self._held if not self._fits(one, size_bytes)]
        if lacking and self.too_large is None:
            self.short_of = lacking[0]
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
            self._is_too_large(error, limit_type)
            return False
        if grown is not None:
            self._held[limit_type] = grown
        return grown is not None

    def _is_too_large(self, error: PermitTooLargeError, limit_type: LimitType) -> None:
        if self.too_large is None:
            self.too_large, self.short_of = error, limit_type

    def hand_over_direct(self, answer: TopicsAnswer) -> MemoryPermit | None:
        """Return the direct permit of what was fetched, which is the caller's from now on.

        What was reserved beyond the true size is given back; shrinking never waits. For an answer
        that is charged already there is no permit.
        """
        if self._flight.kept is not None:
            return None
        for limit_type, permit in self._held.items():
            settled = self._limiter.try_update(permit, min(answer.command_bytes, permit.size))
            self._held[limit_type] = settled or permit
        return self._held.pop(LimitType.DIRECT_MEMORY)

    def release(self) -> None:
        """Give back what is still held."""
        for permit in self._held.values():
            self._limiter.release(permit)
        self._held.clear()


def _is_right_for(flight: Flight, answer: TopicsAnswer) -> bool:
    """Return True if the answer to another's hash is what the client would have got for its own.

    Not if it says ``unchanged`` of a list that nobody has, or brings the one that the client has.
    """
    tail = answer.tail()
    return tail is not None and tail.changed and tail.topics_hash != flight.key.topics_hash
