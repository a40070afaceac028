"""Clients that wait for the answer to a shared broker request, and are notified in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.flow.lookup_semaphore import LookupPermit
    from proto.transport.connection import Connection
    from server.connection.request_errors import RequestError

ANSWERS_A_TURN = 64
"""Clients answered in one event-loop iteration: about five ms."""
BYTES_A_TURN = 4_194_304
"""Most bytes sent in one event-loop iteration: the kernel copies them."""


class Requester(NamedTuple):
    """A client's request that waits for the answer to a shared broker request."""

    cnx: Connection
    request_id: int
    permit: LookupPermit
    failed: Callable[[int, RequestError], object]


class Requesters:
    """All client requests that wait for the answer to one shared broker request.

    Waiters may leave while others are being notified, except those of the current batch.
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, deque[Requester]] = {}
        self._unserved: deque[Requester] = deque()

    def __len__(self) -> int:
        """Return the number of waiting clients."""
        return len(self._waiting)

    def clients(self) -> Iterator[Connection]:
        """Yield the client of each request that was not yet notified."""
        for requester in self._unserved:
            yield requester.cnx
        for cnx, few in self._waiting.items():
            yield from repeat(cnx, len(few))

    def add(self, requester: Requester) -> None:
        """Add a client's request, to be notified of the answer."""
        self._waiting.setdefault(requester.cnx, deque()).append(requester)

    def remove(self, cnx: Connection) -> None:
        """Remove all requests of a client."""
        self._waiting.pop(cnx, None)

    async def tell(
        self,
        tell: Callable[[Requester], None],
        served: Callable[[Connection], None],
        size_bytes: int = 0,
    ) -> None:
        """Notify all waiting requests, one batch per event-loop iteration.

        Args:
            tell: Notifies one request; an exception leaves this and all later requests unnotified.
            served: Called for a client without further waiting requests.
            size_bytes: Size of the answer to each request.
        """
        most = answers_a_turn(size_bytes)
        while self._take(most, served):
            while self._unserved:
                tell(self._unserved[0])
                self._unserved.popleft()
            if self._waiting:
                await asyncio.sleep(0)

    def _take(self, most: int, served: Callable[[Connection], None]) -> bool:
        while self._waiting and len(self._unserved) < most:
            cnx, few = next(iter(self._waiting.items()))
            self._unserved.append(few.popleft())
            if not few:
                del self._waiting[cnx]
                served(cnx)
        return bool(self._unserved)


def answers_a_turn(size_bytes: int) -> int:
    """Return the number of answers of a given size to send in one event-loop iteration."""
    return max(1, min(ANSWERS_A_TURN, BYTES_A_TURN // max(1, size_bytes)))
