"""Topic lists on their way through the proxy: one broker request for all who ask the same.

A flight runs in a task of its own, so that a client that leaves takes nothing from the others;
when the last one leaves before the answer, the flight ends in that turn and gives back what it
holds.

The answer is not decoded: every client gets a new head with its own request id and the same
views of the received bytes, and the direct permit goes back when the last of them is sent.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.errors import PulsarClientError
from limiter.dual import LimitType
from proto.errors import RemoteProtocolError
from proxy.errors import ErrorTranslation, RequestError, UnansweredRequestError
from proxy.flight import Flight, Requester

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.dual import AsyncDualMemoryLimiter, MemoryPermit
    from proto.topic_listing import TopicsAnswer
    from proto.transport import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.charging import Charging
    from server.unanswered import UnansweredRequests

logger = logging.getLogger(__name__)


class Flights:
    """The flights that are under way, found by what they ask.

    Bound: every requester holds a place of the proxy's lookup semaphore.
    """

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        charging: Charging,
        translation: ErrorTranslation,
        unanswered: UnansweredRequests,
        *,
        share: bool,
    ) -> None:
        self._limiter = limiter
        self._charging = charging
        self._translation = translation
        self._unanswered = unanswered
        self._share = share
        self._joinable: dict[Hashable, Flight] = {}
        self._of_cnx: dict[Connection, dict[Flight, None]] = {}

    def __len__(self) -> int:
        return len(self._joinable)

    def join(
        self,
        requester: Requester,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
    ) -> None:
        """Let a client wait for the flight that asks the same, or start one."""
        key: Hashable = flight_key(request, address) if self._share else object()
        flight = self._joinable.get(key)
        if flight is None:
            owner = self._limiter.share(request.namespace)
            flight = self._joinable[key] = Flight(key, request, brokers, address, owner)
            flight.task = asyncio.get_running_loop().create_task(self._fly(flight))
        flight.waiting.setdefault(requester.cnx, []).append(requester)
        flight.owner.join(requester.cnx)
        self._of_cnx.setdefault(requester.cnx, {})[flight] = None

    def cancel_owner(self, cnx: Connection) -> None:
        """Take a client out of every flight, in this turn; a flight nobody waits for ends.

        What it shared stays with the others; what was its own, and its places, are free.
        """
        for flight in self._of_cnx.pop(cnx, ()):
            flight.waiting.pop(cnx, None)
            if not flight.waiting and flight.task is not None:
                self._close_door(flight)
                flight.task.cancel()
        self._limiter.cancel_owner(cnx)

    def exempt_from_share(self, cnx: Connection) -> None:
        """Many clients are behind a connection: it is another proxy's."""
        self._limiter.exempt_from_share(cnx)

    async def finished(self, cnx: Connection) -> None:
        """Wait until a client waits for no flight any more."""
        while flights := self._of_cnx.get(cnx):
            await asyncio.wait([flight.task for flight in flights if flight.task is not None])

    async def _fly(self, flight: Flight) -> None:
        """Run one flight; its exception boundary."""
        try:
            async with self._charging.charged(flight) as (answer, permit):
                self._close_door(flight)
                self._distribute(flight, answer, permit)
        except RequestError as error:
            self._fail(flight, error)
        except UnansweredRequestError as error:
            self._leave_unanswered(flight, error)
        except PulsarClientError as error:
            self._fail(flight, self._translation.of(error, flight.broker))
        except RemoteProtocolError as error:
            text = f"the broker's answer cannot be read: {error}"
            self._fail(flight, RequestError(pb.ServiceNotReady, text))
        except Exception as error:
            logger.exception("a listing of %s failed after an error of ours", flight)
            self._fail(flight, RequestError(pb.UnknownError, f"{type(error).__name__}: {error}"))
        finally:
            self._close_door(flight)
            # The answer on its way to clients is direct memory: they hold no heap, and count there
            # for nobody's share.
            flight.owner.done_with(LimitType.HEAP_MEMORY)

    def _close_door(self, flight: Flight) -> None:
        """Nobody joins a flight that has its answer, or has ended without one."""
        if self._joinable.get(flight.key) is flight:
            del self._joinable[flight.key]

    def _distribute(self, flight: Flight, answer: TopicsAnswer, permit: MemoryPermit) -> None:
        """Queue the answer for everybody who waits; plain code, so nobody can leave meanwhile."""
        requesters = self._take_waiting(flight)
        if not requesters:
            self._limiter.release(permit)
            return
        for requester in requesters:
            response = answer.addressed_to(requester.request_id)
            entry_left = partial(flight.owner.leave, requester.cnx)
            requester.cnx.enqueue(response.buffers, response.size, entry_left)
            requester.permit.release()

    def _fail(self, flight: Flight, error: RequestError) -> None:
        for requester in self._take_waiting(flight):
            requester.failed(requester.request_id, error)
            requester.permit.release()
            flight.owner.leave(requester.cnx)

    def _leave_unanswered(self, flight: Flight, error: UnansweredRequestError) -> None:
        for requester in self._take_waiting(flight):
            self._unanswered.left(flight.request.namespace, requester.cnx.peer, str(error))
            requester.permit.release()
            flight.owner.leave(requester.cnx)

    def _take_waiting(self, flight: Flight) -> list[Requester]:
        waiting, flight.waiting = flight.waiting, {}
        for cnx in waiting:
            flights = self._of_cnx.get(cnx)
            if flights is not None:
                flights.pop(flight, None)
                if not flights:
                    del self._of_cnx[cnx]
        return [requester for few in waiting.values() for requester in few]


def flight_key(request: pb.CommandGetTopicsOfNamespace, address: Address) -> Hashable:
    """Return what two requests must have in common to share one answer."""
    return (
        address,
        request.namespace,
        request.mode,
        request.topics_pattern if request.HasField("topics_pattern") else None,
        request.topics_hash if request.HasField("topics_hash") else None,
        tuple((prop.key, prop.value) for prop in request.properties),
    )
