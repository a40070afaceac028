"""The clients that wait for a flight's answer, and the turns in which they are told."""

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
"""Clients that are answered before other connections have their turn: about five ms."""
BYTES_A_TURN = 4_194_304
"""Bytes that they are sent together at most: the kernel copies them."""


class Requester(NamedTuple):
    """One client's request that waits for a flight's answer."""

    cnx: Connection
    request_id: int
    permit: LookupPermit
    failed: Callable[[int, RequestError], object]


class Requesters:
    """All who wait for one flight.

    Those who wait may leave, also while others are told already; those who are told in this turn,
    and were not yet, cannot.
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, deque[Requester]] = {}
        self._unserved: deque[Requester] = deque()

    def __len__(self) -> int:
        """Return how many clients wait."""
        return len(self._waiting)

    def clients(self) -> Iterator[Connection]:
        """Yield the client of each request that was told nothing yet."""
        for requester in self._unserved:
            yield requester.cnx
        for cnx, few in self._waiting.items():
            yield from repeat(cnx, len(few))

    def add(self, requester: Requester) -> None:
        """Let one more request wait."""
        self._waiting.setdefault(requester.cnx, deque()).append(requester)

    def remove(self, cnx: Connection) -> None:
        """Take a client's requests out."""
        self._waiting.pop(cnx, None)

    async def tell(
        self,
        tell: Callable[[Requester], None],
        served: Callable[[Connection], None],
        size_bytes: int = 0,
    ) -> None:
        """Tell everybody who waits, so many in a turn of the event loop.

        Args:
            tell: Tells one; if it raises, this one and all behind it were told nothing.
            served: Called for a client of which nothing waits any more.
            size_bytes: Of the answer that each is sent.
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
    """Return how many are sent an answer of a size before other connections have their turn."""
    return max(1, min(ANSWERS_A_TURN, BYTES_A_TURN // max(1, size_bytes)))
