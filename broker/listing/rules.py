"""Rules of answering listings, and refusals: a profile chooses when a broker is put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import illegal_argument, pulsar_no_namespace, too_large
from broker.topic_lists.listing import EMPTY_LISTING
from limiter.memory.dual_limiter import LimitType
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES, LENGTH_FIELD_BYTES
from server.configuration.common import Profile
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from broker.listing.estimates import ListingEstimate
    from broker.patterns.errors import InvalidPatternError
    from broker.stores.store import Mode
    from broker.topic_lists.listing import TopicListing
    from limiter.errors import PermitTooLargeError
    from proto.names import NamespaceName


class Refusals:
    """Refusals of listings: every time the same one, with the figures."""

    def check(self, listing: TopicListing, namespace: NamespaceName, mode: Mode) -> None:
        """Accept every listing: a namespace that is missing has no topics."""

    def pattern(self, error: InvalidPatternError) -> RequestError:
        """Return the refusal of a pattern."""
        return RequestError(pb.MetadataError, str(error))

    def heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        """Return the refusal of a listing that is larger than the heap limit.

        Args:
            error: The limiter's.
            estimate: The request's.
            listed: Whether the size is that of a listing, not of an estimate.
        """
        estimate.forget()
        return too_large(error, "heap estimate", LimitType.HEAP_MEMORY)

    def direct(self, error: PermitTooLargeError) -> RequestError:
        """Return the refusal of a response that is larger than the direct memory limit."""
        return too_large(error, "response", LimitType.DIRECT_MEMORY)


class PulsarRefusals(Refusals):
    """Refusals as recorded of a real broker: a listing too large is refused once, then never."""

    def check(self, listing: TopicListing, namespace: NamespaceName, mode: Mode) -> None:
        """Refuse to list non-persistent topics of a missing namespace.

        Raises:
            RequestError: It is missing.
        """
        if mode != pb.CommandGetTopicsOfNamespace.PERSISTENT and listing is EMPTY_LISTING:
            raise pulsar_no_namespace(namespace)

    def pattern(self, error: InvalidPatternError) -> RequestError:
        """See Refusals.pattern."""
        return RequestError(pb.MetadataError, error.java_text)

    def heap(
        self, error: PermitTooLargeError, estimate: ListingEstimate, *, listed: bool
    ) -> RequestError | UnansweredRequestError:
        """See Refusals.heap."""
        if listed or not estimate.refused_before(error.requested):
            return illegal_argument(error)
        return UnansweredRequestError(str(error))

    def direct(self, error: PermitTooLargeError) -> RequestError:
        """See Refusals.direct."""
        return illegal_argument(error)


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """Rules of answering listings.

    Attributes:
        private_buffers: Whether every response is assembled into bytes of its own.
        max_frame_bytes: Largest frame that is sent; 0 is unbounded: then a client that is sent
            more than it takes loses its connection.
        keeps_heap: Whether a request keeps its heap while it waits for direct memory. Otherwise
            it gives the heap back, and may be answered in the turn in which it comes.
        refusals: Makes the errors.
    """

    private_buffers: bool
    max_frame_bytes: int
    keeps_heap: bool = False
    refusals: Refusals = field(default_factory=Refusals)

    @staticmethod
    def of(
        profile: Profile,
        *,
        private_buffers: bool,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> AnswerRules:
        """Return the rules of a profile.

        Args:
            profile: floodgateProfile.
            private_buffers: Whether floodgateResponseBuffers is ``private``.
            max_message_bytes: maxMessageSize: a frame may have 10,240 bytes more.
        """
        if profile is Profile.PULSAR:
            return AnswerRules(private_buffers, 0, keeps_heap=True, refusals=PulsarRefusals())
        max_frame_bytes = max_message_bytes + FRAME_PADDING_BYTES + LENGTH_FIELD_BYTES
        return AnswerRules(private_buffers, max_frame_bytes)
