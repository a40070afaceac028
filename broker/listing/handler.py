"""Answers GET_TOPICS_OF_NAMESPACE: the request this whole program is about.

Read ``_make`` top to bottom: estimate, heap, listing, heap again, pattern, hash, response,
direct memory, outbound queue. The direct permit goes into the outbound entry; heap ends with
its block, when the response is in the queue, or has to wait for direct memory.

Source: upstream ServerCnx.internalHandleGetTopicsOfNamespace (PIP-442).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.configuration.property_bounds import TooManyPropertiesError
from broker.errors import (
    HEAP_LIMIT_EXCEEDED,
    NO_DIRECT_MEMORY,
    illegal_argument,
    no_namespace_as_shipped,
    too_large,
    too_large_for_a_frame,
)
from broker.listing.fast_path import AnswersAtOnce
from broker.listing.lister import NO_PROPERTIES
from broker.listing.responses import ListingAnswer, heap_key, listing_answer
from broker.patterns.errors import InvalidPatternError
from broker.plugins.calls import ResourcesError
from broker.stores.changes import StoreError
from broker.topic_lists.listing import EMPTY_LISTING
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from broker.listing.estimates import ListingEstimate, ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.listing.responses import AnswerRules
    from broker.patterns.filter import PatternFilter
    from broker.stores.store import Mode
    from broker.topic_lists.listing import TopicListing
    from limiter.memory.direct_ahead import DirectAhead
    from limiter.memory.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from proto.topics_response import TopicsResponse
    from proto.transport.connection import Connection

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


MAX_WAITS = 4
"""Most waits of a request for direct memory: its list may grow faster than that is granted."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request.

    Attributes:
        properties: Those of its properties that matter.
        pattern: The client's, if the broker is to apply it.
    """

    request: pb.CommandGetTopicsOfNamespace
    namespace: NamespaceName
    properties: Mapping[str, str]
    pattern: str | None
    cnx: Connection

    @property
    def name(self) -> str:
        """``tenant/namespace``."""
        return str(self.namespace)

    @property
    def key(self) -> Hashable:
        """Equal for all who ask the same."""
        return heap_key(self.name, self.request.mode, self.properties, self.pattern)


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

        Who has to wait for direct memory, which waits for peers, holds nothing meanwhile: his
        answer is made again once it is granted. As shipped he keeps his heap.

        When the peer vanishes at any of the waits, its queued places and permits are given
        back by ``memory.cancel_owner(cnx)`` and the task is cancelled.

        Raises:
            RequestError: The request is refused.
            UnansweredRequestError: As shipped, nothing is answered.
        """
        properties = self.properties_of(request)
        asked = _Asked(request, namespace, properties, self._evaluated_pattern(request), cnx)
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

    async def _make(self, asked: _Asked, ahead: DirectAhead | None = None) -> int | None:
        """Make an answer and queue it, or return what direct memory it would have to wait for."""
        estimate = self._estimates.of(asked.namespace, asked.request.mode, asked.properties)
        try:
            return await self._make_within(asked, estimate, ahead)
        finally:
            estimate.failed()

    async def _make_within(
        self, asked: _Asked, estimate: ListingEstimate, ahead: DirectAhead | None
    ) -> int | None:
        reserved, listed = await estimate.size(), False
        try:
            async with self._memory.heap(asked.key, reserved, asked.cnx, asked.name) as heap:
                listed = True
                listing = await self._list(asked)
                await heap.resize(estimate.actual(listing))
                answer = await self._answer(asked, listing)
                return await self._respond(asked, answer, ahead)
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, HEAP_LIMIT_EXCEEDED) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_heap(error, estimate, listed=listed) from None

    async def _list(self, asked: _Asked) -> TopicListing:
        try:
            listing = await self._lister.list_topics(
                asked.namespace, asked.request.mode, asked.properties
            )
        except (StoreError, ResourcesError) as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        shipped = self._rules.as_shipped and asked.request.mode != PERSISTENT
        if shipped and listing is EMPTY_LISTING:
            raise no_namespace_as_shipped(asked.namespace)
        return listing

    def _evaluated_pattern(self, request: pb.CommandGetTopicsOfNamespace) -> str | None:
        """Return the client's pattern if the broker is to apply it."""
        pattern = request.topics_pattern
        given = request.HasField("topics_pattern")
        return pattern if given and self._pattern_filter.applies_to(pattern) else None

    async def _answer(self, asked: _Asked, listing: TopicListing) -> ListingAnswer:
        """Apply the client's pattern and compare with the client's hash."""
        if asked.pattern is not None:
            try:
                listing = await self._pattern_filter.filter(listing, asked.pattern)
            except InvalidPatternError as error:
                text = error.java_text if self._rules.as_shipped else str(error)
                raise RequestError(pb.MetadataError, text) from None
        filtered = asked.pattern is not None
        return listing_answer(asked.request, listing, asked.cnx, filtered=filtered)

    async def _respond(
        self, asked: _Asked, answer: ListingAnswer, ahead: DirectAhead | None
    ) -> int | None:
        """Queue an answer under direct memory; return how much it lacks if that has to wait."""
        response = answer.response
        if self._rules.is_too_large(response):
            raise too_large_for_a_frame(response.size, self._rules.max_frame_bytes)
        if self._rules.as_shipped:
            give_back = await self._direct(asked, answer)
        elif (at_once := self._direct_at_once(asked, answer, ahead)) is not None:
            give_back = at_once
        else:
            return response.command_bytes
        if self._rules.private_buffers:
            response = _joined(response, give_back)
        paid_bytes = response.command_bytes if self._memory.pays else 0
        asked.cnx.enqueue(response.buffers, response.size, give_back, paid_bytes)
        return None

    # -- direct memory ------------------------------------------------------------------------

    async def _direct(self, asked: _Asked, answer: ListingAnswer) -> Callable[[], object]:
        """Wait for it with the answer made: as shipped."""
        key, size_bytes = answer.shared, answer.response.command_bytes
        with self._direct_refusals():
            return await self._memory.direct(key, size_bytes, asked.cnx, asked.name)

    def _direct_at_once(
        self, asked: _Asked, answer: ListingAnswer, ahead: DirectAhead | None
    ) -> Callable[[], object] | None:
        """Take what was waited for, or what is free."""
        key, size_bytes = answer.shared, answer.response.command_bytes
        paid = None if ahead is None else ahead.pay(key, size_bytes)
        if paid is not None:
            return paid
        passing = self._memory.passing(
            LimitType.DIRECT_MEMORY, key, size_bytes, asked.cnx, asked.name
        )
        return None if passing is None else passing.stay()

    async def _direct_ahead(self, asked: _Asked, size_bytes: int, *, alone: bool) -> DirectAhead:
        """Wait for it with nothing in hand, together with who asks the same.

        Whose share went to another's answer (the list changed, or is made for each) waits alone.
        """
        key = (asked.cnx, asked.request.request_id) if alone else asked.key
        with self._direct_refusals():
            return await self._memory.direct_ahead(key, size_bytes, asked.cnx, asked.name)

    @contextmanager
    def _direct_refusals(self) -> Iterator[None]:
        try:
            yield
        except PermitAcquireError:
            raise RequestError(pb.TooManyRequests, NO_DIRECT_MEMORY) from None
        except PermitTooLargeError as error:
            raise self._too_large_for_direct(error) from None

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
