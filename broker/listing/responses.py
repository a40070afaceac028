"""Makes the responses to GET_TOPICS_OF_NAMESPACE, and says which of them are the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.listing.lister import NO_PROPERTIES
from broker.topic_lists.listing import EMPTY_LISTING, TopicListing
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES, LENGTH_FIELD_BYTES
from proto.topics_response import TopicsResponse, encode_topics_response

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.stores.store import Mode
    from proto.transport.connection import Connection


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

    @property
    def max_frame_bytes(self) -> int:
        """What a frame may have."""
        return self.max_message_bytes + FRAME_PADDING_BYTES + LENGTH_FIELD_BYTES

    def is_too_large(self, response: TopicsResponse) -> bool:
        """Tell whether the client would take a response for the end of the connection."""
        return response.size > self.max_frame_bytes and not self.as_shipped


@dataclass(frozen=True, slots=True)
class ListingAnswer:
    """A response, ready to be sent.

    Attributes:
        shared: Equal for all who are sent the same bytes.
    """

    response: TopicsResponse
    shared: Hashable


def listing_answer(
    request: pb.CommandGetTopicsOfNamespace,
    listing: TopicListing,
    cnx: Connection,
    *,
    filtered: bool,
) -> ListingAnswer:
    """Answer with a listing; a client whose hash says that it has the list is told so."""
    changed = not (request.HasField("topics_hash") and request.topics_hash == listing.hash)
    sent = listing if changed else EMPTY_LISTING
    response = topics_response(
        request.request_id, sent, listing.hash, filtered=filtered, changed=changed
    )
    # An empty answer shares nothing: its few bytes are its own.
    return ListingAnswer(response, sent if len(sent) else (cnx, request.request_id))


def topics_response(
    request_id: int, listing: TopicListing, topics_hash: str, *, filtered: bool, changed: bool
) -> TopicsResponse:
    """Assemble the response to one request around the listing's own blocks."""
    return encode_topics_response(
        request_id,
        listing.wire_parts(),
        listing.totals.wire_bytes,
        topics_hash,
        filtered=filtered,
        changed=changed,
    )


def heap_key(
    namespace: str,
    mode: Mode,
    properties: Mapping[str, str] = NO_PROPERTIES,
    pattern: str | None = None,
) -> Hashable:
    """Return what those share who hold heap for the same.

    What a pattern keeps is made for who asks with it: nobody else's charge covers it.
    """
    return (namespace, mode, frozenset(properties.items()) if properties else None, pattern)
