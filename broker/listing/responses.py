"""Requests and responses of GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.listing.lister import NO_PROPERTIES
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing
from proto.topics_response import TopicsResponse, encode_topics_response

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.stores.store import Mode
    from proto.names import NamespaceName
    from proto.transport.connection import Connection


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """A GET_TOPICS_OF_NAMESPACE request that is being answered in a task.

    Attributes:
        command: The command.
        namespace: The command's namespace.
        name: ``tenant/namespace``.
        properties: The properties by which the request selects topics.
        pattern: The client's pattern, if the broker must apply it.
        cnx: The client's connection.
    """

    command: pb.CommandGetTopicsOfNamespace
    namespace: NamespaceName
    name: str
    properties: Mapping[str, str]
    pattern: str | None
    cnx: Connection

    @property
    def key(self) -> Hashable:
        """The key by which equal requests share a reservation of heap memory."""
        return heap_key(self.name, self.command.mode, self.properties, self.pattern)


def heap_key(
    namespace: str,
    mode: Mode,
    properties: Mapping[str, str] = NO_PROPERTIES,
    pattern: str | None = None,
) -> Hashable:
    """Return the key by which requests with the same list share a reservation of heap.

    The result of a pattern is private to requests with the pattern: no other reservation covers it.
    """
    return (namespace, mode, frozenset(properties.items()) if properties else None, pattern)


@dataclass(frozen=True, slots=True)
class ListingAnswer:
    """A response to GET_TOPICS_OF_NAMESPACE, ready to be sent.

    Attributes:
        response: The encoded response.
        shared: The key for sharing direct memory among recipients of the same bytes.
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
    """Build the response with a topic list; it has no names if the client's hash matches."""
    changed = not (request.HasField("topics_hash") and request.topics_hash == listing.hash)
    sent = listing if changed else EMPTY_LISTING
    response = topics_response(
        request.request_id, sent, listing.hash, filtered=filtered, changed=changed
    )
    # An empty answer shares no bytes.
    return ListingAnswer(response, sent if len(sent) else (cnx, request.request_id))


def topics_response(
    request_id: int, listing: TopicListing, topics_hash: str, *, filtered: bool, changed: bool
) -> TopicsResponse:
    """Encode a response; the names' bytes are shared with the topic list, not copied."""
    return encode_topics_response(
        request_id,
        listing.wire_parts(),
        listing.totals.wire_bytes,
        topics_hash,
        filtered=filtered,
        changed=changed,
    )
