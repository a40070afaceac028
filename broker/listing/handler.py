"""The handler of GET_TOPICS_OF_NAMESPACE, the command whose memory Floodgate limits.

``_make`` lists the steps: estimate, heap, listing, heap again, pattern, hash, response, direct
memory, outbound queue. The direct permit goes into the outbound entry; heap is released at the end
of its block, when the response is queued or has to wait for direct memory. ``answer_at_once`` takes
the same steps in one event-loop iteration if no step has to wait.

Source: upstream ServerCnx.internalHandleGetTopicsOfNamespace (PIP-442).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.configuration.plugin_keys import TooManyPropertiesError
from broker.errors import HEAP_LIMIT_EXCEEDED, NO_DIRECT_MEMORY
from broker.listing.lister import NO_PROPERTIES
from broker.listing.responses import ListingAnswer, ListingRequest, heap_key, listing_answer
from broker.patterns.errors import InvalidPatternError
from broker.plugins.calls import ResourcesError
from broker.stores.changes import StoreError
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from server.connection.request_errors import RequestError, not_granted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.listing.estimates import ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.listing.rules import AnswerRules
    from broker.patterns.filter import PatternFilter
    from broker.stores.store import Mode
    from broker.topic_lists.sequence import TopicListing
    from limiter.memory.response_memory import DirectAhead, ResponseMemory
    from proto.names import NamespaceName
    from proto.topics_response import TopicsResponse
    from proto.transport.connection import Connection

MAX_WAITS = 4
"""How often a request waits for direct memory at most: its list may grow faster than permits are
granted."""


class GetTopicsHandler:
    """Answers requests for topic lists, within the limits on heap and direct memory."""

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
        self._refusals = rules.refusals

    def expected_bytes(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> int | None:
        """Return the probable size of a response in bytes, for flow control; None if unknown."""
        return self._estimates.expected_bytes(namespace, mode, properties)

    def properties_of(self, request: pb.CommandGetTopicsOfNamespace) -> Mapping[str, str]:
        """Return the properties by which a request selects topics.

        Raises:
            RequestError: The request has too many properties; it is refused before they are copied.
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
        """Answer a request immediately if no step has to wait; a task takes twice the time.

        Memory is requested, counted and recorded, but held only for bytes that the kernel has not
        accepted yet.

        Args:
            request: The command.
            namespace: The command's namespace.
            cnx: The client's connection.
            alone: Whether the connection has no concurrent request. If it has one, only an empty
                topic list, which needs no memory, is sent.

        Returns:
            False if a step has to wait, or refuses: no memory is held, and ``serve`` takes over.
        """
        listing = self._listing_at_once(request, namespace, alone=alone)
        if listing is None:
            return False
        if not listing.totals.count:
            empty = listing_answer(request, listing, cnx, filtered=False).response.joined()
            self._write(empty, cnx, _nothing_to_give_back, 0)
            return True
        name, transient = request.namespace, self._memory.transient
        key, size_bytes = heap_key(name, request.mode), listing.estimated_bytes
        heap = transient(LimitType.HEAP_MEMORY, key, size_bytes, cnx, name)
        if heap is None:
            return False
        answer = listing_answer(request, listing, cnx, filtered=False)
        response, size_bytes = answer.response, answer.response.command_bytes
        rules = self._rules
        if rules.is_too_large(response) or rules.is_copied_in_steps(response):
            return False
        direct = transient(LimitType.DIRECT_MEMORY, answer.shared, size_bytes, cnx, name)
        if direct is None:
            return False
        own = response.joined() if rules.private_buffers else response
        self._write(own, cnx, direct.stay, self._paid_bytes(response))
        direct.end()
        heap.end()
        return True

    def _listing_at_once(
        self, request: pb.CommandGetTopicsOfNamespace, namespace: NamespaceName, *, alone: bool
    ) -> TopicListing | None:
        """Return the topic list if both list and size are known without waiting, else None."""
        rules = self._rules
        if rules.keeps_heap or request.HasField("topics_pattern") or request.properties:
            return None
        listing = self._lister.listing_at_once(namespace, request.mode)
        if listing is None or not listing.totals.count or (alone and self._estimates.exact):
            return listing
        return None

    async def serve(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        cnx: Connection,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> None:
        """Answer a request, waiting for the topic list and for memory as needed.

        A request waiting for direct memory, and so for peers, holds no memory meanwhile: its answer
        is rebuilt after the grant. As shipped, the request keeps its heap. When the peer vanishes
        during a wait, ``memory.cancel_owner(cnx)`` releases queued requests and permits, and the
        task is cancelled.

        Raises:
            RequestError: The request is refused.
            UnansweredRequestError: Profile pulsar leaves the request unanswered.
        """
        pattern = self._evaluated_pattern(request)
        asked = ListingRequest(request, namespace, str(namespace), properties, pattern, cnx)
        lacking_bytes = await self._make(asked)
        for waits in range(MAX_WAITS):
            if lacking_bytes is None:
                return
            ahead = await self._direct_ahead(asked, lacking_bytes, alone=waits > 0)
            try:
                lacking_bytes = await self._make(asked, ahead)
            finally:
                ahead.release()
        if lacking_bytes is not None:
            raise RequestError(pb.TooManyRequests, NO_DIRECT_MEMORY)

    async def _make(self, asked: ListingRequest, ahead: DirectAhead | None = None) -> int | None:
        """Build a response and queue it, or return the number of missing bytes of direct memory.

        None means that the response is queued.
        """
        estimate = self._estimates.of(asked.namespace, asked.command.mode, asked.properties)
        listed = False
        try:
            reserved = await estimate.size()
            async with self._memory.heap(asked.key, reserved, asked.cnx, asked.name) as heap:
                listed = True
                listing = await self._listing(asked)
                await heap.resize(estimate.listed(listing))
                answer = await self._answer(asked, listing)
                direct = await self._direct(asked, answer, ahead)
                if direct is None:
                    return answer.response.command_bytes
                await self._enqueue(answer.response, asked.cnx, direct)
        except PermitAcquireError as error:
            raise not_granted(error, HEAP_LIMIT_EXCEEDED) from None
        except PermitTooLargeError as error:
            raise self._refusals.heap(error, estimate, listed=listed) from None
        finally:
            estimate.failed()
        return None

    # -- steps --------------------------------------------------------------------------------

    def _evaluated_pattern(self, request: pb.CommandGetTopicsOfNamespace) -> str | None:
        """Return the client's pattern if the broker must apply it, else None."""
        pattern = request.topics_pattern
        given = request.HasField("topics_pattern")
        return pattern if given and self._pattern_filter.applies_to(pattern) else None

    async def _listing(self, asked: ListingRequest) -> TopicListing:
        mode = asked.command.mode
        try:
            listing = await self._lister.list_topics(asked.namespace, mode, asked.properties)
        except (StoreError, ResourcesError) as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        self._refusals.check(listing, asked.namespace, mode)
        return listing

    async def _answer(self, asked: ListingRequest, listing: TopicListing) -> ListingAnswer:
        """Build the response: apply the client's pattern, and omit a list that the client has."""
        filtered = asked.pattern is not None
        if asked.pattern is not None:
            try:
                listing = await self._pattern_filter.filter(listing, asked.pattern)
            except InvalidPatternError as error:
                raise self._refusals.pattern(error) from None
        answer = listing_answer(asked.command, listing, asked.cnx, filtered=filtered)
        self._rules.check_size(answer.response)
        return answer

    async def _direct(
        self, asked: ListingRequest, answer: ListingAnswer, ahead: DirectAhead | None
    ) -> Callable[[], object] | None:
        """Take direct memory that was acquired in advance or is free; return its release function.

        If there is not enough, return None; as shipped, the request waits while it holds its heap.
        """
        key, size_bytes = answer.shared, answer.response.command_bytes
        if self._rules.keeps_heap:
            with self._direct_refusals():
                return await self._memory.direct(key, size_bytes, asked.cnx, asked.name)
        if ahead is not None and (paid := ahead.pay(key, size_bytes)) is not None:
            return paid
        direct = LimitType.DIRECT_MEMORY
        free = self._memory.transient(direct, key, size_bytes, asked.cnx, asked.name)
        return None if free is None else free.stay()

    async def _direct_ahead(
        self, asked: ListingRequest, size_bytes: int, *, alone: bool
    ) -> DirectAhead:
        """Wait for direct memory while holding none; equal requests wait together.

        A request waits alone if the memory it waited for went to another answer, because the topic
        list has changed or is private.
        """
        key = (asked.cnx, asked.command.request_id) if alone else asked.key
        with self._direct_refusals():
            return await self._memory.direct_ahead(key, size_bytes, asked.cnx, asked.name)

    @contextmanager
    def _direct_refusals(self) -> Iterator[None]:
        try:
            yield
        except PermitAcquireError as error:
            raise not_granted(error, NO_DIRECT_MEMORY) from None
        except PermitTooLargeError as error:
            raise self._refusals.direct(error) from None

    async def _enqueue(
        self, response: TopicsResponse, cnx: Connection, give_back: Callable[[], object]
    ) -> None:
        try:
            response = await self._rules.owned(response)
        except BaseException:
            give_back()
            raise
        cnx.enqueue(response.buffers, response.size, give_back, self._paid_bytes(response))

    @staticmethod
    def _write(
        response: TopicsResponse,
        cnx: Connection,
        stay: Callable[[], Callable[[], object]],
        paid_bytes: int,
    ) -> None:
        """Write a response directly if the connection's queue is empty, or queue it."""
        if not cnx.write_through(response.buffers, stay, paid_bytes):
            cnx.enqueue(response.buffers, response.size, stay(), paid_bytes)

    def _paid_bytes(self, response: TopicsResponse) -> int:
        return response.command_bytes if self._memory.pays else 0


def _nothing_to_give_back() -> Callable[[], object]:
    return _nothing_to_give_back
