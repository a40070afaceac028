"""Answers listings that need no wait in the turn they are asked for.

The listing is known and its memory free for whoever asks: a task, a place and two leases would
cost more than all of the answer. Whatever is not so is for GetTopicsHandler.serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.listing.responses import heap_key, listing_answer
from limiter.memory.dual_limiter import LimitType

if TYPE_CHECKING:
    from collections.abc import Callable

    import proto.PulsarApi_pb2 as pb
    from broker.listing.estimates import ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.listing.responses import AnswerRules
    from broker.topic_lists.listing import TopicListing
    from limiter.memory.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from proto.transport.connection import Connection


class AnswersAtOnce:
    """Never as shipped, where every request is a task's.

    Args:
        lister: Knows listings that are in memory.
        estimates: Says whether these are charged with their true size from the start.
        memory: Accounts for heap and direct memory.
        rules: How listings are answered.
    """

    def __init__(
        self,
        lister: TopicLister,
        estimates: ListingEstimates,
        memory: ResponseMemory,
        rules: AnswerRules,
    ) -> None:
        self._lister = lister
        self._estimates = estimates
        self._memory = memory
        self._rules = rules

    def answer(
        self,
        request: pb.CommandGetTopicsOfNamespace,
        namespace: NamespaceName,
        cnx: Connection,
        *,
        alone: bool = False,
    ) -> bool:
        """Answer, if that needs no wait.

        Args:
            request: What is asked.
            namespace: Its namespace.
            cnx: Who asks.
            alone: Whether nothing else of the connection is under way: only an empty listing,
                which needs no memory, is answered beside others.

        Returns:
            False for all other requests: nothing was asked for.
        """
        if self._rules.as_shipped or request.HasField("topics_pattern") or request.properties:
            return False
        listing = self._lister.listing_at_once(namespace, request.mode)
        if listing is None:
            return False
        if not len(listing):
            frame = b"".join(listing_answer(request, listing, cnx, filtered=False).response.buffers)
            if not cnx.write_through(frame, _nothing_to_give_back, 0):
                cnx.enqueue([frame], len(frame))
            return True
        return alone and self._estimates.exact and self._pass(request, listing, cnx)

    def _pass(
        self, request: pb.CommandGetTopicsOfNamespace, listing: TopicListing, cnx: Connection
    ) -> bool:
        """Send a listing under memory that is free, as ``serve`` does."""
        passing, name = self._memory.transient, request.namespace
        key = heap_key(name, request.mode)
        heap = passing(LimitType.HEAP_MEMORY, key, listing.estimated_bytes, cnx, name)
        if heap is None:
            return False
        answer = listing_answer(request, listing, cnx, filtered=False)
        response = answer.response
        if self._rules.is_too_large(response):
            return False
        size_bytes = response.command_bytes
        direct = passing(LimitType.DIRECT_MEMORY, answer.shared, size_bytes, cnx, name)
        if direct is None:
            return False
        if self._rules.private_buffers:
            response = response.joined()
        paid_bytes = size_bytes if self._memory.pays else 0
        if not cnx.write_through(response.buffers, direct.stay, paid_bytes):
            cnx.enqueue(response.buffers, response.size, direct.stay(), paid_bytes)
        direct.end()
        heap.end()
        return True


def _nothing_to_give_back() -> Callable[[], object]:
    return _nothing_to_give_back
