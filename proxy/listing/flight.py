"""A flight: one request to the broker, and the clients that wait for its answer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable, Iterator

    from client.cnx import ClientCnx
    from limiter.flow.lookup_semaphore import LookupPermit
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer
    from proto.transport.connection import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.listing.live_answers import LiveAnswer, LiveAnswers
    from server.connection.request_errors import RequestError


class FlightKey(NamedTuple):
    """Holds what two requests must have in common to share one flight.

    Attributes:
        asked: What must be the same to share the bytes of a list.
        topics_hash: The hash of the list that the client has already; None without.
    """

    asked: Hashable
    topics_hash: str | None


class Requester:
    """One client's request that waits for a flight's answer."""

    __slots__ = ("cnx", "failed", "permit", "request_id")

    def __init__(
        self,
        cnx: Connection,
        request_id: int,
        permit: LookupPermit,
        failed: Callable[[int, RequestError], object],
    ) -> None:
        self.cnx = cnx
        self.request_id = request_id
        self.permit = permit
        self.failed = failed


class Flight:
    """One broker request and who waits for it.

    Attributes:
        owner: Those who wait for it, as the one holder of what is held for it; afterwards, those
            to whom its answer is on the way.
        waiting: Those who wait, also while others are answered already; they may leave.
        unserved: Those who are being answered in this turn, and were not yet.
        kept: Another flight's answer. While the broker is asked whether it is still right,
            everybody who waits is a reference of it.
        questioned: Whether the broker was asked about such an answer.
        declined: Whether the broker's answer found no memory.
    """

    def __init__(
        self,
        key: FlightKey,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
        owner: SharedOwner,
        live: LiveAnswers,
    ) -> None:
        self.key = key
        self.request = request
        self.owner = owner
        self.waiting: dict[Connection, deque[Requester]] = {}
        self.unserved: deque[Requester] = deque()
        self.kept: LiveAnswer | None = None
        self.questioned = False
        self.declined = False
        self.task: asyncio.Task[None] | None = None
        self.broker: ClientCnx | None = None
        self._brokers = brokers
        self._address = address
        self._live = live

    def __repr__(self) -> str:
        return f"<Flight {self.request.namespace} for {len(self.waiting)} clients>"

    def add(self, requester: Requester) -> None:
        """Let one more request wait: it is part of all that is held for the flight."""
        self.waiting.setdefault(requester.cnx, deque()).append(requester)
        self.owner.join(requester.cnx)
        if self.kept is not None:
            self.kept.join(requester.cnx)

    @property
    def abandoned(self) -> bool:
        """True if everybody who waited has left; its task ends in its next turn."""
        return not any(holder.references for holder in self.owner.holders.values())

    def requesters(self) -> Iterator[Requester]:
        """Yield who has no answer yet."""
        yield from self.unserved
        for few in self.waiting.values():
            yield from few

    # -- an answer that is on its way already -------------------------------------------------

    def answer_in_question(self) -> LiveAnswer | None:
        """Return the answer on its way that the broker can be asked about, once a flight.

        A client that gave a hash of its own is served as it asked first: mostly its list is
        right, and that answer is small. Only when a list comes that there is no memory for, the
        broker is asked about the one that is held already.
        """
        as_asked_first = self.key.topics_hash is not None and not self.declined
        return None if self.questioned or as_asked_first else self._newest_other()

    def _newest_other(self) -> LiveAnswer | None:
        """Return the newest answer on its way, if it is not the list that the client has."""
        live = self._live.newest(self.key.asked)
        return live if live is not None and live.topics_hash != self.key.topics_hash else None

    def keep(self, live: LiveAnswer) -> None:
        """Hold an answer for all who wait."""
        self.kept = live
        for requester in self.requesters():
            live.join(requester.cnx)

    def keep_newest(self) -> LiveAnswer | None:
        """Hold the answer to ask about for all who wait; None if it is gone by now."""
        self.questioned = True
        live = self._newest_other()
        if live is not None:
            self.keep(live)
        return live

    def let_go(self) -> None:
        """Drop what was kept for those who have no answer yet."""
        live, self.kept = self.kept, None
        if live is not None:
            for requester in self.requesters():
                live.leave(requester.cnx)
            self._live.forget_if_left(live)

    # -- the broker ---------------------------------------------------------------------------

    async def ask(
        self, admit: Callable[[int], bool] | None, topics_hash: str | None = None
    ) -> TopicsAnswer:
        """Ask the broker; see ClientCnx.topics_raw.

        Args:
            admit: Decides on an announced answer.
            topics_hash: Given instead of the client's own.
        """
        request = self.request
        if topics_hash is not None:
            request = pb.CommandGetTopicsOfNamespace()
            request.CopyFrom(self.request)
            request.topics_hash = topics_hash
        self.broker = await self._brokers.get(self._address)
        return await self.broker.topics_raw(request, admit)
