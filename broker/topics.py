"""Answers GET_TOPICS_OF_NAMESPACE: the request this whole program is about.

Read ``serve`` top to bottom: estimate, heap, listing, heap again, pattern, hash, response,
direct memory, outbound queue. The direct permit goes into the outbound entry; heap ends with
its block, when the response is in the queue.

Source: upstream ServerCnx.internalHandleGetTopicsOfNamespace (PIP-442).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import (
    HEAP_LIMIT_EXCEEDED,
    NO_DIRECT_MEMORY,
    RequestError,
    UnansweredRequestError,
    illegal_argument,
    too_large,
)
from broker.stores.store import StoreError
from limiter.dual import LimitType
from limiter.errors import PermitAcquireError, PermitTooLargeError
from proto.patterns import InvalidPatternError
from proto.topic_listing import EMPTY_LISTING, TopicListing, TopicsResponse, topics_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.estimates import ListingEstimate, ListingEstimates
    from broker.listing import PatternFilter, TopicLister
    from broker.stores.store import Mode
    from limiter.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from proto.transport import Connection


@dataclass(frozen=True, slots=True)
class TopicsAnswer:
    """What a client gets: a listing, maybe filtered, or the word that its own is right."""

    listing: TopicListing
    topics_hash: str
    filtered: bool
    changed: bool


class GetTopicsHandler:
    """Serves topic lists under the memory limits.

    Args:
        lister: Finds the topics of a namespace.
        pattern_filter: Applies clients' patterns.
        estimates: Says how much to reserve first.
        memory: Accounts for heap and direct memory.
        as_shipped: Profile pulsar: a listing larger than the limit is refused once and then
            never answered; otherwise it is refused every time, with the figures.
        private_buffers: Whether every response is assembled into bytes of its own.
    """

    def __init__(
        self,
        lister: TopicLister,
        pattern_filter: PatternFilter,
        estimates: ListingEstimates,
        memory: ResponseMemory,
        *,
        as_shipped: bool,
        private_buffers: bool,
    ) -> None:
        self._lister = lister
        self._pattern_filter = pattern_filter
        self._estimates = estimates
        self._memory = memory
        self._as_shipped = as_shipped
        self._private_buffers = private_buffers

    def expected_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""
        return self._estimates.expected_bytes(namespace, mode)

    async def serve(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        cnx: Connection,
    ) -> None:
        """Put the answer of one request into the connection's outbound queue.

        When the peer vanishes at any of the waits, its queued places and permits are given
        back by ``memory.cancel_owner(cnx)`` and the task is cancelled.

        Raises:
            RequestError: The request is refused.
            UnansweredRequestError: As shipped, nothing is answered.
        """
        estimate = self._estimates.of(namespace, request.mode)
        try:
            await self._serve(request, namespace, cnx, estimate)
        finally:
            estimate.failed()

    async def _serve(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        cnx: Connection,
        estimate: ListingEstimate,
    ) -> None:
        pattern, reserved = self._evaluated_pattern(request), await estimate.size()
        # What a pattern keeps is made for who asks with it: nobody else's charge covers it.
        key = (namespace, request.mode, pattern)
        listed = False
        try:
            async with self._memory.heap(key, reserved, cnx, str(namespace)) as heap:
                listed = True
                listing = await self._list(namespace, request)
                await heap.resize(estimate.actual(listing))
                answer = await self._answer(request, listing, pattern)
                await self._respond(request.request_id, namespace, answer, cnx)
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_heap(error, estimate, listed=listed) from None

    async def _list(
        self, namespace: NamespaceName, request: pb.CommandGetTopicsOfNamespace
    ) -> TopicListing:
        try:
            return await self._lister.list_topics(namespace, request.mode)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None

    def _evaluated_pattern(self, request: pb.CommandGetTopicsOfNamespace) -> str | None:
        """Return the client's pattern if the broker is to apply it."""
        pattern = request.topics_pattern
        given = request.HasField("topics_pattern")
        return pattern if given and self._pattern_filter.applies_to(pattern) else None

    async def _answer(
        self, request: pb.CommandGetTopicsOfNamespace, listing: TopicListing, pattern: str | None
    ) -> TopicsAnswer:
        """Apply the client's pattern and compare with the client's hash."""
        filtered = pattern is not None
        if pattern is not None:
            try:
                listing = await self._pattern_filter.filter(listing, pattern)
            except InvalidPatternError as error:
                raise RequestError(pb.MetadataError, str(error)) from None
        if request.HasField("topics_hash") and request.topics_hash == listing.hash:
            return TopicsAnswer(EMPTY_LISTING, listing.hash, filtered, changed=False)
        return TopicsAnswer(listing, listing.hash, filtered, changed=True)

    async def _respond(
        self, request_id: int, namespace: NamespaceName, answer: TopicsAnswer, cnx: Connection
    ) -> None:
        """Acquire direct memory for the command's size and queue it."""
        response = topics_response(
            request_id,
            answer.listing,
            answer.topics_hash,
            filtered=answer.filtered,
            changed=answer.changed,
        )
        # An empty answer shares nothing: its few bytes are its own.
        shared = answer.listing if len(answer.listing) else (cnx, request_id)
        try:
            give_back = await self._memory.direct(
                shared, response.command_bytes, cnx, str(namespace)
            )
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, NO_DIRECT_MEMORY) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_direct(error) from None
        if self._private_buffers:
            response = _joined(response, give_back)
        paid_bytes = response.command_bytes if self._memory.pays else 0
        cnx.enqueue(response.buffers, response.size, give_back, paid_bytes)

    # -- refusals -----------------------------------------------------------------------------

    def _too_large_for_heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        if not self._as_shipped:
            estimate.forget()
            return too_large(error, "heap estimate", LimitType.HEAP_MEMORY)
        if listed or not estimate.refused_before(error.requested):
            return illegal_argument(error)
        return UnansweredRequestError(str(error))

    def _too_large_for_direct(self, error: PermitTooLargeError) -> RequestError:
        if self._as_shipped:
            return illegal_argument(error)
        return too_large(error, "response", LimitType.DIRECT_MEMORY)


def _joined(response: TopicsResponse, give_back: Callable[[], object]) -> TopicsResponse:
    """Assemble a response into bytes of its own; where there is no room for them, nothing is held.

    Raises:
        MemoryError: There is none.
    """
    try:
        return response.joined()
    except MemoryError:
        give_back()
        raise
