"""Unanswered requests of a connection.

A request is pending from sending until its answer, its timeout, its caller's cancellation or the
connection's end; the first of these removes the request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import proto.PulsarApi_pb2 as pb
    from proto.topics_response import TopicsAnswer


class PendingRequest:
    """An unanswered request.

    Args:
        admit: Decides on a large answer at the announcement of its size.
        raw: Whether to return the answer undecoded.
    """

    __slots__ = ("admit", "answer", "raw")

    def __init__(self, admit: Callable[[int], bool] | None, *, raw: bool) -> None:
        self.answer: asyncio.Future[pb.BaseCommand | TopicsAnswer] = (
            asyncio.get_running_loop().create_future()
        )
        self.admit = admit
        self.raw = raw

    def resolve(self, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Set the answer, unless the caller has left."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """Set an error, unless the caller has left."""
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingRequests(dict[int, PendingRequest]):
    """The pending requests of a connection, by request id."""

    next_id = 0

    def add(self, pending: PendingRequest) -> int:
        """Register a request; return its new request id."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        self[request_id] = pending
        return request_id

    def resolve(self, request_id: int, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Set the answer of a request, if still pending."""
        if request_id in self:
            self[request_id].resolve(answer)

    def fail(self, request_id: int, error: Exception) -> None:
        """Set the error of a request, if still pending."""
        if request_id in self:
            self[request_id].fail(error)
