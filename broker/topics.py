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
    too_large_for_a_frame,
)
from broker.listing import NO_PROPERTIES
from broker.listing_properties import TooManyPropertiesError
from broker.resource_calls import ResourcesError
from broker.stores.store import StoreError
from limiter.dual import LimitType
from limiter.errors import PermitAcquireError, PermitTooLargeError
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES, LENGTH_FIELD_BYTES
from proto.pattern_errors import InvalidPatternError
from proto.topic_hash import EMPTY_HASH
from proto.topic_listing import EMPTY_LISTING, TopicListing, TopicsResponse, topics_response

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from broker.estimates import ListingEstimate, ListingEstimates
    from broker.listing import TopicLister
    from broker.pattern_filter import PatternFilter
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


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """How listings are answered.

    Attributes:
        as_shipped: Profile pulsar: a listing larger than the limit is refused once and then
            never answered; otherwise it is refused every time, with the figures.
        private_buffers: Whether every response is assembled into bytes of its own.
        max_message_bytes: maxMessageSize: a frame may have 10,240 bytes more. As shipped larger
            ones are sent regardless, and cost the client its connection.
    """

    as_shipped: bool
    private_buffers: bool
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES


class GetTopicsHandler:
    """Serves topic lists under the memory limits.

    Args:
        lister: Finds the topics of a namespace.
        pattern_filter: Applies clients' patterns.
        estimates: Says how much to reserve first.
        memory: Accounts for heap and direct memory.
        rules: How it answers.
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
        self._frame_limit_bytes = rules.max_message_bytes + FRAME_PADDING_BYTES + LENGTH_FIELD_BYTES

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

    def answer_at_once(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        cnx: Connection,
        *,
        alone: bool = False,
    ) -> bool:
        """Do in this turn what ``serve`` does, where nothing has to be waited for.

        The listing is known, and the memory free for whoever asks: a task would cost more than
        all of that. An empty listing needs no memory; every other is answered in this way only
        ``alone``: while nothing else of the connection is under way.

        Returns:
            False for all other requests: they are ``serve``'s, and nothing was asked for. Always
            as shipped.
        """
        if self._rules.as_shipped or request.HasField("topics_pattern") or request.properties:
            return False
        listing = self._lister.listing_at_once(namespace, request.mode)
        if listing is None:
            return False
        if not len(listing):
            self._answer_nothing(request, cnx)
            return True
        return alone and self._estimates.exact and self._pass(request, listing, cnx)

    def _answer_nothing(self, request: pb.CommandGetTopicsOfNamespace, cnx: Connection) -> None:
        changed = request.topics_hash != EMPTY_HASH
        response = topics_response(
            request.request_id, EMPTY_LISTING, EMPTY_HASH, filtered=False, changed=changed
        )
        frame = b"".join(response.buffers)
        if not cnx.write_through(frame, _nothing_to_give_back, 0):
            cnx.enqueue([frame], len(frame))

    def _pass(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        listing: TopicListing,
        cnx: Connection,
    ) -> bool:
        """Send a listing under memory that is free: heap, and direct memory, as ``serve`` does."""
        passing, name = self._memory.passing, request.namespace
        key = _heap_key(name, request.mode)
        heap = passing(LimitType.HEAP_MEMORY, key, listing.estimated_bytes, cnx, name)
        if heap is None:
            return False
        answer = _compared(request, listing, filtered=False)
        response, shared = self._response(request.request_id, answer, cnx)
        if self._is_too_large(response):
            return False
        direct = passing(LimitType.DIRECT_MEMORY, shared, response.command_bytes, cnx, name)
        if direct is None:
            return False
        if self._rules.private_buffers:
            response = response.joined()
        paid_bytes = response.command_bytes if self._memory.pays else 0
        if not cnx.write_through(response.buffers, direct.stay, paid_bytes):
            cnx.enqueue(response.buffers, response.size, direct.stay(), paid_bytes)
        direct.end()
        heap.end()
        return True

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
        key = _heap_key(str(namespace), request.mode, properties, pattern)
        listed = False
        try:
            async with self._memory.heap(key, reserved, cnx, str(namespace)) as heap:
                listed = True
                listing = await self._list(namespace, request.mode, properties)
                await heap.resize(estimate.actual(listing))
                answer = await self._answer(request, listing, pattern)
                await self._respond(request.request_id, namespace, answer, cnx)
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_heap(error, estimate, listed=listed) from None

    async def _list(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        try:
            return await self._lister.list_topics(namespace, mode, properties)
        except (StoreError, ResourcesError) as error:
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
                text = error.java_text if self._rules.as_shipped else str(error)
                raise RequestError(pb.MetadataError, text) from None
        return _compared(request, listing, filtered=filtered)

    async def _respond(
        self, request_id: int, namespace: NamespaceName, answer: TopicsAnswer, cnx: Connection
    ) -> None:
        """Acquire direct memory for the command's size and queue it."""
        response, shared = self._response(request_id, answer, cnx)
        self._check_frame(response)
        try:
            give_back = await self._memory.direct(
                shared, response.command_bytes, cnx, str(namespace)
            )
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, NO_DIRECT_MEMORY) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_direct(error) from None
        self._queue(response, give_back, cnx)

    def _response(
        self, request_id: int, answer: TopicsAnswer, cnx: Connection
    ) -> tuple[TopicsResponse, Hashable]:
        """Return the response, and what those share who send the same."""
        response = topics_response(
            request_id,
            answer.listing,
            answer.topics_hash,
            filtered=answer.filtered,
            changed=answer.changed,
        )
        # An empty answer shares nothing: its few bytes are its own.
        return response, answer.listing if len(answer.listing) else (cnx, request_id)

    def _queue(
        self, response: TopicsResponse, give_back: Callable[[], object], cnx: Connection
    ) -> None:
        """Hand a response and its direct memory to the outbound queue."""
        if self._rules.private_buffers:
            response = _joined(response, give_back)
        paid_bytes = response.command_bytes if self._memory.pays else 0
        cnx.enqueue(response.buffers, response.size, give_back, paid_bytes)

    # -- refusals -----------------------------------------------------------------------------

    def _check_frame(self, response: TopicsResponse) -> None:
        """Refuse what the client would take for the end of the connection: nothing waits for it.

        Raises:
            RequestError: The frame is larger than the client was told it may be.
        """
        if self._is_too_large(response):
            raise too_large_for_a_frame(response.size, self._frame_limit_bytes)

    def _is_too_large(self, response: TopicsResponse) -> bool:
        return response.size > self._frame_limit_bytes and not self._rules.as_shipped

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


def _heap_key(
    namespace: str,
    mode: Mode,
    properties: Mapping[str, str] = NO_PROPERTIES,
    pattern: str | None = None,
) -> Hashable:
    """Return what those share who hold heap for the same.

    What a pattern keeps is made for who asks with it: nobody else's charge covers it.
    """
    return (namespace, mode, frozenset(properties.items()) if properties else None, pattern)


def _compared(
    request: pb.CommandGetTopicsOfNamespace, listing: TopicListing, *, filtered: bool
) -> TopicsAnswer:
    """Compare with the client's hash: who has the list already is told so."""
    if request.HasField("topics_hash") and request.topics_hash == listing.hash:
        return TopicsAnswer(EMPTY_LISTING, listing.hash, filtered, changed=False)
    return TopicsAnswer(listing, listing.hash, filtered, changed=True)


def _nothing_to_give_back() -> Callable[[], object]:
    return _nothing_to_give_back


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
