"""The flights of a proxy: topic lists on their way, one broker request for all who ask the same."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proxy.listing.flight import Flight, FlightKey, FlightParts
from proxy.listing.live_answers import LiveAnswers

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter
    from proto.transport.connection import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.errors import ErrorTranslation
    from proxy.listing.charging import Charging
    from proxy.listing.requesters import Requester
    from server.connection.unanswered_requests import UnansweredRequests


class Flights:
    """The flights that are under way, found by what they ask.

    Bound: every requester holds a place of the proxy's lookup semaphore.

    Args:
        limiter: Of heap and direct memory.
        charging, translation, unanswered, frame_limit_bytes, asks_again: See
            FlightParts.
        share: Whether those who ask the same share a flight.

    Attributes:
        live: The answers that are on their way, for flights to come.
    """

    def __init__(  # noqa: PLR0913 - the parts of its flights
        self,
        limiter: AsyncDualMemoryLimiter,
        charging: Charging,
        translation: ErrorTranslation,
        unanswered: UnansweredRequests,
        *,
        share: bool,
        frame_limit_bytes: int | None = None,
        asks_again: bool = False,
    ) -> None:
        self._limiter = limiter
        self._share = share
        self.live = LiveAnswers(limiter, remembers=share and charging.reuses_answers)
        self._parts = FlightParts(
            charging,
            translation,
            unanswered,
            self.live,
            frame_limit_bytes,
            asks_again,
            self._forget,
        )
        self._under_way: dict[FlightKey, Flight] = {}
        self._of_cnx: dict[Connection, dict[Flight, None]] = {}

    def __len__(self) -> int:
        """Return how many flights more clients may join."""
        return sum(flight.open for flight in self._under_way.values())

    def join(
        self,
        requester: Requester,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
    ) -> None:
        """Let a client wait for the flight that asks the same, or start one."""
        key = (
            flight_key(request, address, brokers.asks_for)
            if self._share
            else FlightKey(object(), None)
        )
        flight = self._under_way.get(key)
        if flight is None or not flight.open:
            owner = self._limiter.share(request.namespace)
            flight = Flight(key, request, brokers, address, owner, self._parts)
            flight.start().add_done_callback(partial(self._ended, flight))
            self._under_way[key] = flight
        flight.add(requester)
        self._of_cnx.setdefault(requester.cnx, {})[flight] = None

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""
        return self._parts.charging.expected_bytes(request)

    def cancel_owner(self, cnx: Connection) -> None:
        """Take a client out of every flight, in this turn; a flight nobody waits for ends.

        What it shared stays with the others; what was its own, and its places, are free.
        """
        for flight in self._of_cnx.pop(cnx, ()):
            flight.leave(cnx)
        self._limiter.cancel_owner(cnx)

    def exempt_from_quota(self, cnx: Connection) -> None:
        """Let a connection that stands for many clients, another proxy's, exceed one's quota."""
        self._limiter.exempt_from_quota(cnx)

    async def finished(self, cnx: Connection) -> None:
        """Wait until a client waits for no flight that is under way.

        A flight whose task was cancelled, as when the event loop ends, tells nobody: it is over.
        """
        while flying := [
            flight.task
            for flight in self._of_cnx.get(cnx, ())
            if flight.task is not None and not flight.task.done()
        ]:
            await asyncio.wait(flying)

    def _ended(self, flight: Flight, _: asyncio.Task[None]) -> None:
        if self._under_way.get(flight.key) is flight:
            del self._under_way[flight.key]

    def _forget(self, flight: Flight, cnx: Connection) -> None:
        flights = self._of_cnx.get(cnx)
        if flights is not None:
            flights.pop(flight, None)
            if not flights:
                del self._of_cnx[cnx]


def flight_key(
    request: pb.CommandGetTopicsOfNamespace, address: Address, asks_for: Hashable = None
) -> FlightKey:
    """Return the key under which requests share one answer.

    Args:
        request: What is asked.
        address: Who is asked.
        asks_for: For whom: a broker does not let everybody see everything.
    """
    asked = (
        address,
        asks_for,
        request.namespace,
        request.mode,
        request.topics_pattern if request.HasField("topics_pattern") else None,
        _as_sent(request.properties),
    )
    return FlightKey(asked, request.topics_hash if request.HasField("topics_hash") else None)


def _as_sent(properties: Iterable[pb.KeyValue]) -> bytes:
    """Return properties as they go on the wire: lengths say where each key and value ends."""
    alone = pb.CommandGetTopicsOfNamespace(properties=properties)
    return alone.SerializePartialToString()
