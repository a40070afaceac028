"""Topic lists on their way through the proxy: one broker request for all who ask the same.

A flight runs in a task of its own, so that a client that leaves takes nothing from the others;
when the last one leaves before the answer, the flight ends in that turn and gives back what it
holds.

The answer is not decoded: every client gets a new head with its own request id and the same
views of the received bytes, and the direct permit goes back when the last of them is sent. Until
then a later flight for the same list may give its clients these bytes (proxy.listing.live_answers).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.errors import PulsarClientError
from limiter.memory.dual_limiter import LimitType
from proto.errors import RemoteProtocolError
from proto.frames import LENGTH_FIELD_BYTES
from proxy.errors import ErrorTranslation, too_large_for_a_frame
from proxy.listing.flight import Flight, FlightKey, Requester
from proxy.listing.live_answers import LiveAnswer, LiveAnswers
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, MemoryPermit
    from proto.topics_response import TopicsAnswer, TopicsResponse
    from proto.transport.connection import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.listing.exact_charging import Charging
    from server.connection.unanswered_requests import UnansweredRequests

logger = logging.getLogger(__name__)

ANSWERS_A_TURN = 64
"""So many clients are answered before other connections have their turn: about five ms."""
BYTES_A_TURN = 4_194_304
"""Nor more of them once they are sent so many bytes together, which the kernel copies."""


class Flights:
    """The flights that are under way, found by what they ask.

    Bound: every requester holds a place of the proxy's lookup semaphore.

    Args:
        limiter: Of heap and direct memory.
        charging: Says how an answer is paid for.
        translation: Turns what the broker said into what clients are told.
        unanswered: Counts requests that are never answered.
        share: Whether those who ask the same share a flight.
        frame_limit_bytes: What a frame's length field may say for clients; None: nobody looks.

    Attributes:
        live: The answers that are on their way, for flights to come.
    """

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        charging: Charging,
        translation: ErrorTranslation,
        unanswered: UnansweredRequests,
        *,
        share: bool,
        frame_limit_bytes: int | None = None,
    ) -> None:
        self._limiter = limiter
        self._charging = charging
        self._translation = translation
        self._unanswered = unanswered
        self._share = share
        self._frame_limit_bytes = frame_limit_bytes
        self.live = LiveAnswers(limiter, remembers=share and charging.reuses_answers)
        self._joinable: dict[FlightKey, Flight] = {}
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
        key = flight_key(request, address) if self._share else FlightKey(object(), None)
        flight = self._joinable.get(key)
        if flight is None:
            owner = self._limiter.share(request.namespace)
            flight = Flight(key, request, brokers, address, owner, self.live)
            flight.task = asyncio.get_running_loop().create_task(self._fly(flight))
            self._joinable[key] = flight
        flight.add(requester)
        self._of_cnx.setdefault(requester.cnx, {})[flight] = None

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""
        return self._charging.expected_bytes(request)

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
                await self._distribute(flight, answer, permit)
        except RequestError as error:
            await self._fail(flight, error)
        except UnansweredRequestError as error:
            await self._leave_unanswered(flight, error)
        except PulsarClientError as error:
            await self._fail(flight, self._translation.of(error, flight.broker))
        except RemoteProtocolError as error:
            text = f"the broker's answer cannot be read: {error}"
            await self._fail(flight, RequestError(pb.ServiceNotReady, text))
        except Exception as error:
            logger.exception("a listing of %s failed after an error of ours", flight)
            await self._fail(
                flight, RequestError(pb.UnknownError, f"{type(error).__name__}: {error}")
            )
        finally:
            self._close_door(flight)
            self.live.forget_left(flight.key.asked)
            # The answer on its way to clients is direct memory: they hold no heap, and count there
            # for nobody's share.
            flight.owner.done_with(LimitType.HEAP_MEMORY)

    def _close_door(self, flight: Flight) -> None:
        """Nobody joins a flight that has its answer, or has ended without one."""
        if self._joinable.get(flight.key) is flight:
            del self._joinable[flight.key]

    async def _distribute(
        self, flight: Flight, answer: TopicsAnswer, permit: MemoryPermit | None
    ) -> None:
        """Queue the answer for everybody who waits, so many in a turn.

        Who leaves between two turns takes what is his, as before the answer. What breaks here is
        told to those who have none yet.
        """
        live = self._to_send(flight, answer, permit)
        if live is not flight.kept:
            self.live.remember(live)
        while self._take_some(flight, live.answer.command_bytes):
            while flight.unserved:
                self._send(flight, flight.unserved[0], live)
            await _others_have_their_turn(flight)

    def _send(self, flight: Flight, requester: Requester, live: LiveAnswer) -> None:
        """Queue the answer for one client, the first of those that are unserved."""
        response = live.answer.addressed_to(requester.request_id)
        requester.permit.release()
        flight.unserved.popleft()
        if live is flight.kept:
            flight.owner.leave(requester.cnx)
        entry_left = partial(live.leave, requester.cnx)
        if (refusal := self._refusal(response)) is not None:
            entry_left()
            requester.failed(requester.request_id, refusal)
            return
        paid_bytes = 0 if self.live.direct.unbounded else response.command_bytes
        requester.cnx.enqueue(response.buffers, response.size, entry_left, paid_bytes)

    def _refusal(self, response: TopicsResponse) -> RequestError | None:
        """Refuse what only a client's longer request id makes larger than a frame may be."""
        limit_bytes, total_size = self._frame_limit_bytes, response.size - LENGTH_FIELD_BYTES
        if limit_bytes is None or total_size <= limit_bytes:
            return None
        return too_large_for_a_frame(total_size, limit_bytes)

    def _to_send(
        self, flight: Flight, answer: TopicsAnswer, permit: MemoryPermit | None
    ) -> LiveAnswer:
        """Return the bytes to send: those that are on their way already, where they are the same.

        They may have been fetched by a flight for clients with another hash.
        """
        newest = self.live.newest(flight.key.asked)
        if permit is not None and newest is not None and newest.equals(answer):
            flight.keep(newest)  # The other copy is given back when all have left its owner.
        if flight.kept is not None:
            self.live.reused_total += 1
            return flight.kept
        return LiveAnswer(self.live, flight.key.asked, answer, flight.owner)

    async def _fail(self, flight: Flight, error: RequestError) -> None:
        while self._take_some(flight):
            while flight.unserved:
                requester = self._leave_first(flight)
                requester.failed(requester.request_id, error)
            await _others_have_their_turn(flight)

    async def _leave_unanswered(self, flight: Flight, error: UnansweredRequestError) -> None:
        while self._take_some(flight):
            while flight.unserved:
                peer = self._leave_first(flight).cnx.peer
                self._unanswered.left(flight.request.namespace, peer, str(error))
            await _others_have_their_turn(flight)

    def _leave_first(self, flight: Flight) -> Requester:
        """Take the first of those that are unserved out of the flight."""
        requester = flight.unserved.popleft()
        requester.permit.release()
        flight.owner.leave(requester.cnx)
        return requester

    def _take_some(self, flight: Flight, size_bytes: int = 0) -> bool:
        """Take the next who wait: they are answered in this turn, and cannot leave the flight.

        Args:
            flight: What they wait for.
            size_bytes: Of the answer that each is sent.

        Returns:
            False when nobody waits any more.
        """
        most = answers_a_turn(size_bytes)
        while flight.waiting and len(flight.unserved) < most:
            cnx, few = next(iter(flight.waiting.items()))
            flight.unserved.append(few.popleft())
            if not few:
                del flight.waiting[cnx]
                self._forget(cnx, flight)
        return bool(flight.unserved)

    def _forget(self, cnx: Connection, flight: Flight) -> None:
        """A client waits for a flight no more."""
        flights = self._of_cnx.get(cnx)
        if flights is not None:
            flights.pop(flight, None)
            if not flights:
                del self._of_cnx[cnx]


def answers_a_turn(size_bytes: int) -> int:
    """Return how many are sent an answer of a size before other connections have their turn."""
    return max(1, min(ANSWERS_A_TURN, BYTES_A_TURN // max(1, size_bytes)))


async def _others_have_their_turn(flight: Flight) -> None:
    if flight.waiting:
        await asyncio.sleep(0)


def flight_key(request: pb.CommandGetTopicsOfNamespace, address: Address) -> FlightKey:
    """Return what two requests must have in common to share one answer."""
    asked = (
        address,
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
