"""Answers GET_TOPICS_OF_NAMESPACE: the request this whole program is about.

Read ``serve`` top to bottom: estimate, heap, listing, heap again, pattern, hash, response,
direct memory, outbound queue. The direct permit goes into the outbound entry; heap ends with
its block, when the response is in the queue.

Source: upstream ServerCnx.internalHandleGetTopicsOfNamespace (PIP-442).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.answers_at_once import AnswersAtOnce
from broker.errors import (
    HEAP_LIMIT_EXCEEDED,
    NO_DIRECT_MEMORY,
    RequestError,
    UnansweredRequestError,
    illegal_argument,
    no_namespace_as_shipped,
    too_large,
    too_large_for_a_frame,
)
from broker.listing import NO_PROPERTIES
from broker.listing_properties import TooManyPropertiesError
from broker.resource_calls import ResourcesError
from broker.stores.store import StoreError
from broker.topics_responses import ListingAnswer, heap_key, listing_answer
from limiter.dual import LimitType
from limiter.errors import PermitAcquireError, PermitTooLargeError
from proto.pattern_errors import InvalidPatternError
from proto.topic_listing import EMPTY_LISTING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.estimates import ListingEstimate, ListingEstimates
    from broker.listing import TopicLister
    from broker.pattern_filter import PatternFilter
    from broker.stores.store import Mode
    from broker.topics_responses import AnswerRules
    from limiter.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from proto.topic_listing import TopicListing, TopicsResponse
    from proto.transport import Connection

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


class GetTopicsHandler:
    """Serves topic lists under the memory limits.

    Args:
        lister: Finds the topics of a namespace.
        pattern_filter: Applies clients' patterns.
        estimates: Says how much to reserve first.
        memory: Accounts for heap and direct memory.
        rules: How it answers.

    Attributes:
        at_once: Answers what needs none of the waits of ``serve``; it is asked first.
    """

    def __init__(
        self,
        lister: TopicLister,
        pattern_filter: PatternFilter,
        estimates: ListingEstimates,
        memory: ResponseMemory,
        rules: AnswerRules,
    ) -> None:
        self._lister = lister
        self._pattern_filter = pattern_filter
        self._estimates = estimates
        self._memory = memory
        self._rules = rules
        self.at_once = AnswersAtOnce(lister, estimates, memory, rules)

    def expected_bytes(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""
        return self._estimates.expected_bytes(namespace, mode, properties)

    def properties_of(self, request: pb.CommandGetTopicsOfNamespace) -> Mapping[str, str]:
        """Return the properties that matter for a request.

        Raises:
            RequestError: It has too many; nothing was copied.
        """
        try:
            return self._lister.properties_of(request)
        except TooManyPropertiesError as error:
            raise RequestError(pb.NotAllowedError, str(error)) from None

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
        properties = self.properties_of(request)
        estimate = self._estimates.of(namespace, request.mode, properties)
        try:
            await self._serve(request, namespace, properties, cnx, estimate)
        finally:
            estimate.failed()

    async def _serve(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        properties: Mapping[str, str],
        cnx: Connection,
        estimate: ListingEstimate,
    ) -> None:
        pattern, reserved = self._evaluated_pattern(request), await estimate.size()
        key = heap_key(str(namespace), request.mode, properties, pattern)
        listed = False
        try:
            async with self._memory.heap(key, reserved, cnx, str(namespace)) as heap:
                listed = True
                listing = await self._list(namespace, request.mode, properties)
                await heap.resize(estimate.actual(listing))
                answer = await self._answer(request, listing, pattern, cnx)
                await self._respond(namespace, answer, cnx)
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_heap(error, estimate, listed=listed) from None

    async def _list(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        try:
            listing = await self._lister.list_topics(namespace, mode, properties)
        except (StoreError, ResourcesError) as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        if listing is EMPTY_LISTING and self._rules.as_shipped and mode != PERSISTENT:
            raise no_namespace_as_shipped(namespace)
        return listing

    def _evaluated_pattern(self, request: pb.CommandGetTopicsOfNamespace) -> str | None:
        """Return the client's pattern if the broker is to apply it."""
        pattern = request.topics_pattern
        given = request.HasField("topics_pattern")
        return pattern if given and self._pattern_filter.applies_to(pattern) else None

    async def _answer(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        listing: TopicListing,
        pattern: str | None,
        cnx: Connection,
    ) -> ListingAnswer:
        """Apply the client's pattern and compare with the client's hash."""
        if pattern is not None:
            try:
                listing = await self._pattern_filter.filter(listing, pattern)
            except InvalidPatternError as error:
                text = error.java_text if self._rules.as_shipped else str(error)
                raise RequestError(pb.MetadataError, text) from None
        return listing_answer(request, listing, cnx, filtered=pattern is not None)

    async def _respond(
        self, namespace: NamespaceName, answer: ListingAnswer, cnx: Connection
    ) -> None:
        """Acquire direct memory for the command's size and queue it."""
        response = answer.response
        if self._rules.is_too_large(response):
            raise too_large_for_a_frame(response.size, self._rules.max_frame_bytes)
        try:
            give_back = await self._memory.direct(
                answer.shared, response.command_bytes, cnx, str(namespace)
            )
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, NO_DIRECT_MEMORY) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_direct(error) from None
        if self._rules.private_buffers:
            response = _joined(response, give_back)
        paid_bytes = response.command_bytes if self._memory.pays else 0
        cnx.enqueue(response.buffers, response.size, give_back, paid_bytes)

    # -- refusals -----------------------------------------------------------------------------

    def _too_large_for_heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        if not self._rules.as_shipped:
            estimate.forget()
            return too_large(error, "heap estimate", LimitType.HEAP_MEMORY)
        if listed or not estimate.refused_before(error.requested):
            return illegal_argument(error)
        return UnansweredRequestError(str(error))

    def _too_large_for_direct(self, error: PermitTooLargeError) -> RequestError:
        if self._rules.as_shipped:
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
