"""The requests of one connection that have no answer yet.

A request is pending from the moment it is sent until its answer, its timeout, its caller's
cancellation or the connection's end, whichever is first; each of them removes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import proto.PulsarApi_pb2 as pb
    from proto.topics_response import TopicsAnswer


class PendingRequest:
    """A request that waits for its answer.

    Args:
        admit: Decides on a large answer when its size is announced.
        raw: Whether the answer is taken undecoded.
    """

    __slots__ = ("admit", "answer", "raw")

    def __init__(self, admit: Callable[[int], bool] | None, *, raw: bool) -> None:
        self.answer: asyncio.Future[pb.BaseCommand | TopicsAnswer] = (
            asyncio.get_running_loop().create_future()
        )
        self.admit = admit
        self.raw = raw

    def resolve(self, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Hand the answer to the caller, unless it has given up."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """Raise an error in the caller, unless it has given up."""
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingRequests(dict[int, PendingRequest]):
    """The pending requests of one connection, by the request ids that it gave them."""

    next_id = 0

    def add(self, pending: PendingRequest) -> int:
        """Return a request id of its own for a request."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        self[request_id] = pending
        return request_id

    def resolve(self, request_id: int, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Hand an answer to the caller that waits for it, if any does."""
        if request_id in self:
            self[request_id].resolve(answer)

    def fail(self, request_id: int, error: Exception) -> None:
        """Raise an error in the caller of a request, if any waits."""
        if request_id in self:
            self[request_id].fail(error)
