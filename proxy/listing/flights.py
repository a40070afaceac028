"""The flights of a proxy: broker requests for topic lists that equal client requests share."""

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
    """The flights in progress: broker requests that serve all clients with equal requests.

    Bound: every requester holds a permit of the proxy's lookup semaphore.

    Args:
        limiter: Limiter of heap and direct memory.
        charging, translation, unanswered, frame_limit_bytes, asks_again: See FlightParts.
        share: Whether equal requests share a flight.

    Attributes:
        live: Answers still being sent to clients, for later flights.
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
        """Return the number of flights that further clients can join."""
        return sum(flight.open for flight in self._under_way.values())

    def join(
        self,
        requester: Requester,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
    ) -> None:
        """Add a client's request to the flight of equal requests, or start a new flight."""
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
        """Return the probable size in bytes of the answer to a request; None if unknown."""
        return self._parts.charging.expected_bytes(request)

    def cancel_owner(self, cnx: Connection) -> None:
        """Remove a client from all flights immediately; a flight without clients ends.

        Shared memory stays with the remaining clients; private memory and permits are released.
        """
        for flight in self._of_cnx.pop(cnx, ()):
            flight.leave(cnx)
        self._limiter.cancel_owner(cnx)

    def exempt_from_quota(self, cnx: Connection) -> None:
        """Exempt a client from quotas: it is a proxy, and so stands for many clients."""
        self._limiter.exempt_from_quota(cnx)

    async def finished(self, cnx: Connection) -> None:
        """Wait until the client waits for no flight any more.

        A flight with a cancelled task, as at the event loop's end, counts as finished: it notifies
        no client.
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
    """Return the key of a client's request; requests with equal keys share one broker request.

    Args:
        request: The request.
        address: The broker.
        asks_for: The client's identity: a broker does not show all topics to all clients.
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
    """Return properties in protobuf's wire format, in which keys and values cannot be confused."""
    alone = pb.CommandGetTopicsOfNamespace(properties=properties)
    return alone.SerializePartialToString()
