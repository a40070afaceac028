"""Rules for answering and refusing topic lists, which differ between the profiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import (
    illegal_argument,
    pulsar_no_namespace,
    too_large,
    too_large_for_a_frame,
)
from broker.topic_lists.sequence import EMPTY_LISTING
from limiter.memory.dual_limiter import LimitType
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES, LENGTH_FIELD_BYTES
from proto.topics_response import COPY_BYTES
from server.configuration.common import Profile
from server.connection.request_errors import RequestError, UnansweredRequestError
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from broker.listing.estimates import ListingEstimate
    from broker.patterns.errors import InvalidPatternError
    from broker.stores.store import Mode
    from broker.topic_lists.sequence import TopicListing
    from limiter.errors import PermitTooLargeError
    from proto.names import NamespaceName
    from proto.topics_response import TopicsResponse


class Refusals:
    """Errors for refused topic lists; each names the size and the exceeded limit."""

    def check(self, listing: TopicListing, namespace: NamespaceName, mode: Mode) -> None:
        """Accept every list; a namespace that does not exist has no topics."""

    def pattern(self, error: InvalidPatternError) -> RequestError:
        """Return the error for an invalid pattern."""
        return RequestError(pb.MetadataError, str(error))

    def heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        """Return the error for a topic list larger than the heap limit.

        Args:
            error: The limiter's error.
            estimate: The request's estimate.
            listed: True if the size is that of the list, False if it is an estimate.
        """
        estimate.forget()
        return too_large(error, "heap estimate", LimitType.HEAP_MEMORY)

    def direct(self, error: PermitTooLargeError) -> RequestError:
        """Return the error for a response larger than the direct memory limit."""
        return too_large(error, "response", LimitType.DIRECT_MEMORY)


class PulsarRefusals(Refusals):
    """Errors for refused topic lists, as recorded from a real broker.

    A list that is too large is refused only once; later requests for it stay unanswered.
    """

    def check(self, listing: TopicListing, namespace: NamespaceName, mode: Mode) -> None:
        """Refuse to list the non-persistent topics of a namespace that does not exist.

        Raises:
            RequestError: The namespace is missing.
        """
        if mode != pb.CommandGetTopicsOfNamespace.PERSISTENT and listing is EMPTY_LISTING:
            raise pulsar_no_namespace(namespace)

    def pattern(self, error: InvalidPatternError) -> RequestError:
        """Return the error for an invalid pattern, with Java's text."""
        return RequestError(pb.MetadataError, error.java_text)

    def heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        """Return Java's error for a list above the heap limit; later requests stay unanswered."""
        if listed or not estimate.refused_before(error.requested):
            return illegal_argument(error)
        return UnansweredRequestError(str(error))

    def direct(self, error: PermitTooLargeError) -> RequestError:
        """Return Java's error for a response larger than the direct memory limit."""
        return illegal_argument(error)


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The building of responses with topic lists, in which the profiles differ.

    Attributes:
        private_buffers: Whether every response is assembled into private bytes.
        max_frame_bytes: The largest frame sent. With 0 there is no limit: a client closes its
            connection when it receives a frame above the client's own limit.
        keeps_heap: Whether a request keeps its heap while waiting for direct memory. Otherwise the
            request releases the heap, and may be answered in the event-loop iteration of its
            arrival.
        refusals: Builds the errors.
        copies: Copies large responses in steps.
    """

    private_buffers: bool
    max_frame_bytes: int
    keeps_heap: bool = False
    refusals: Refusals = field(default_factory=Refusals)
    copies: Steps = field(default_factory=Steps)

    def is_too_large(self, response: TopicsResponse) -> bool:
        """Return True if the response is larger than the largest frame accepted by clients."""
        return 0 < self.max_frame_bytes < response.size

    def check_size(self, response: TopicsResponse) -> None:
        """Refuse a response larger than the largest frame accepted by clients.

        Raises:
            RequestError: The response is larger than a frame may be.
        """
        if self.is_too_large(response):
            raise too_large_for_a_frame(response.size, self.max_frame_bytes)

    def is_copied_in_steps(self, response: TopicsResponse) -> bool:
        """Return True if ``owned`` will copy the response in several steps."""
        return self.private_buffers and response.size > COPY_BYTES

    async def owned(self, response: TopicsResponse) -> TopicsResponse:
        """Return the response, with a copy of its bytes if responses must not share bytes."""
        if self.is_copied_in_steps(response):
            return await self.copies.take(response.copying())
        return response.joined() if self.private_buffers else response

    @staticmethod
    def of(
        profile: Profile,
        *,
        private_buffers: bool,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> AnswerRules:
        """Return the rules of a profile for building responses.

        Args:
            profile: floodgateProfile.
            private_buffers: Whether floodgateResponseBuffers is ``private``.
            max_message_bytes: maxMessageSize: a frame may have 10,240 bytes more.
        """
        if profile is Profile.PULSAR:
            return AnswerRules(private_buffers, 0, keeps_heap=True, refusals=PulsarRefusals())
        max_frame_bytes = max_message_bytes + FRAME_PADDING_BYTES + LENGTH_FIELD_BYTES
        return AnswerRules(private_buffers, max_frame_bytes)
