"""A flight: one broker request for a topic list, and the clients that wait for its answer.

A flight runs in a separate task, so that a client that leaves does not affect the remaining
clients; when the last client leaves before the answer, the flight ends in the same event-loop
iteration and releases its memory. The answer is not decoded: every client gets a new head with its
own request id and the same views of the received bytes, whose memory is released after the last
send. Until then a later flight for the same list may send the same bytes: a broker request confirms
them (proxy.listing.live_answers). The bytes are then shared without a further charge. During the
confirmation the waiting clients hold the bytes, too; no client waits for memory meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from client.connection.errors import AnswerDeclinedError, DisconnectedError, RequestTooLargeError
from client.exceptions import PulsarException
from limiter.memory.dual_limiter import LimitType
from proto.errors import RemoteProtocolError
from proto.frames import LENGTH_FIELD_BYTES
from proxy.errors import ErrorTranslation, not_in_time, too_large_for_a_frame
from proxy.listing.requesters import Requester, Requesters
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

    from client.connection.cnx import ClientCnx
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer, TopicsResponse
    from proto.transport.connection import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.listing.charging import Charge, Charging
    from proxy.listing.live_answers import LiveAnswer, LiveAnswers
    from server.connection.unanswered_requests import UnansweredRequests

logger = logging.getLogger(__name__)

MAX_ASKS = 5
"""Most broker requests for a list growing faster than memory is granted."""


class FlightKey(NamedTuple):
    """Key of a flight: clients' requests with equal keys share one broker request.

    Attributes:
        asked: The fields on which the bytes of the list depend.
        topics_hash: The hash of the client's current list; None if the client sent none.
    """

    asked: Hashable
    topics_hash: str | None


@dataclass(frozen=True, slots=True)
class FlightParts:
    """The services and settings that all flights of a proxy share.

    Attributes:
        charging: Reserves and charges the memory of answers.
        translation: Translates broker errors to client errors.
        unanswered: Counts requests left unanswered.
        live: Answers still being sent to clients, for later flights.
        frame_limit_bytes: Most a frame's length field may announce to clients; None for no check.
        asks_again: Whether a request to a lost broker is retried once, without a client error.
        served: Called when a client stops waiting for a flight.
    """

    charging: Charging
    translation: ErrorTranslation
    unanswered: UnansweredRequests
    live: LiveAnswers
    frame_limit_bytes: int | None
    asks_again: bool
    served: Callable[[Flight, Connection], None]


class Flight:
    """One broker request for a topic list (a flight), with the clients that wait for its answer.

    Attributes:
        owner: All waiting clients as one holder of the flight's memory; afterwards, all clients to
            which the answer is being sent.
        open: Whether requests may join: before an answer and before the end.
        kept: Another flight's answer. During its confirmation every waiter holds a reference.
        task: The flight's task, once started.
    """

    def __init__(
        self,
        key: FlightKey,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
        owner: SharedOwner,
        parts: FlightParts,
    ) -> None:
        self.key = key
        self.owner = owner
        self.open = True
        self.kept: LiveAnswer | None = None
        self.task: asyncio.Task[None] | None = None
        self._request = request
        self._brokers = brokers
        self._address = address
        self._parts = parts
        self._broker: ClientCnx | None = None
        self._requesters = Requesters()
        self._questioned = self._declined = False
        self._may_ask_again = parts.asks_again

    def __repr__(self) -> str:
        return f"<Flight {self._request.namespace} for {len(self._requesters)} clients>"

    # -- waiters ------------------------------------------------------------------------------

    def start(self) -> asyncio.Task[None]:
        """Send the broker request in a new task, and return the task."""
        self.task = asyncio.get_running_loop().create_task(self._fly())
        return self.task

    def add(self, requester: Requester) -> None:
        """Add a client's request to the flight, whose memory the client then holds, too."""
        self._requesters.add(requester)
        self.owner.join(requester.cnx)
        if self.kept is not None:
            self.kept.join(requester.cnx)

    def leave(self, cnx: Connection) -> None:
        """Remove a client that left; cancel the flight if no client waits any more."""
        self._requesters.remove(cnx)
        if not self._requesters and self.task is not None:
            self.open = False
            # The task's final exception keeps a frame with the answer: drop all references to the
            # task.
            task, self.task = self.task, None
            task.cancel()

    @property
    def _abandoned(self) -> bool:
        """True if all waiting clients have left, so that the task ends in its next step."""
        return not any(holder.references for holder in self.owner.holders.values())

    # -- the answer ---------------------------------------------------------------------------

    async def _fly(self) -> None:
        """Fetch the broker's answer and send it to all waiting clients, or send them an error.

        The exception boundary of the flight's task.
        """
        try:
            async with self.answered() as answer:
                self.open = False
                await self._distribute(answer)
        except RequestError as error:
            await self._fail(error)
        except UnansweredRequestError as error:
            await self._requesters.tell(partial(self._leave_unanswered, error), self._served)
        except PulsarException as error:
            await self._fail(self._parts.translation.of(error, self._broker))
        except RemoteProtocolError as error:
            text = f"the broker's answer cannot be read: {error}"
            await self._fail(RequestError(pb.ServiceNotReady, text))
        except Exception as error:
            logger.exception("a listing of %s failed after an internal error", self)
            await self._fail(RequestError(pb.UnknownError, f"{type(error).__name__}: {error}"))
        finally:
            self.open = False
            self._parts.live.forget_left(self.key.asked)
            # The answer on its way to clients is direct memory: the clients hold no heap, and heap
            # is no longer counted in their shares.
            self.owner.done_with(LimitType.HEAP_MEMORY)

    @asynccontextmanager
    async def answered(self) -> AsyncIterator[TopicsAnswer]:
        """Yield the broker's answer, with its memory charged to the waiting clients.

        The heap memory is held until the ``async with`` block ends.

        Raises:
            RequestError: Memory was not granted.
            UnansweredRequestError: Profile pulsar: the client gets no answer.
            PulsarException: The broker did not answer, or refused.
        """
        charge = self._parts.charging.charge(self._request, self.owner)
        for _ in range(MAX_ASKS):
            try:
                answer = await self._asked(charge)
                if answer is not None:
                    await charge.settle(answer, charged=self.kept is not None)
                    yield answer
                    return
            except AnswerDeclinedError as declined:
                self._declined = True
                charge.declined(declined.total_size)
            except DisconnectedError:
                # Some official clients take an error as the end of their subscription.
                if not self._may_ask_again:
                    raise
                self._may_ask_again = False
            finally:
                self._let_go()
                charge.release()
        raise not_in_time(LimitType.HEAP_MEMORY)

    async def _asked(self, charge: Charge) -> TopicsAnswer | None:
        """Return the broker's list, or an older list that it confirms; None to ask again.

        A client with its own hash is first served as requested: usually its list is current, and
        the answer is small. Only if a list arrives without memory for it, the broker confirms the
        already held list.
        """
        asked, own_hash = self.key
        may_confirm = not self._questioned and (own_hash is None or self._declined)
        confirmation = may_confirm and self._parts.live.newest(asked, own_hash) is not None
        await charge.reserve(confirmation=confirmation)
        live = None
        if confirmation:
            # Kept only now: a waiter for memory must not hold memory awaited by other clients.
            self._questioned, live = True, self._parts.live.newest(asked, own_hash)
        if live is not None:
            self.kept = live.joined_by(self._requesters.clients())
        try:
            answer = await self._ask(charge, live)
        except RequestTooLargeError:
            if live is None:
                raise
            return None  # With the hash, the request is larger than the client's.
        if live is None:
            return answer
        right = live.or_another(answer, own_hash)
        if right is not live.answer:
            self._let_go()
        return right

    async def _ask(self, charge: Charge, live: LiveAnswer | None) -> TopicsAnswer:
        """Request the list from the broker, with the hash of an older answer to be confirmed."""
        request = self._request
        if live is not None and live.topics_hash is not None:
            request = pb.CommandGetTopicsOfNamespace()
            request.CopyFrom(self._request)
            request.topics_hash = live.topics_hash
        self._broker = await self._brokers.get(self._address)
        return await self._broker.topics_raw(request, partial(self._admit, charge))

    def _admit(self, charge: Charge, total_size: int) -> bool:
        """Decide, given the announced size of the broker's answer, whether to read it.

        An announced answer is no confirmation of the older answer, which is released first. The
        announcement may coincide with the last client's leaving: then no holder is left.
        """
        self._let_go()
        return not self._abandoned and charge.admit(total_size)

    def _let_go(self) -> None:
        live, self.kept = self.kept, None
        if live is not None:
            live.left_by(self._requesters.clients())

    # -- telling clients ----------------------------------------------------------------------

    async def _distribute(self, answer: TopicsAnswer) -> None:
        """Queue the broker's answer for sending to all waiting clients.

        Equal bytes already on their way are sent instead, even if fetched for clients with another
        hash.
        """
        live = self._parts.live.to_send(self.key.asked, answer, self.owner, self.kept)
        if self.kept is None and live.owner is not self.owner:
            # The second copy is released after all have left its owner.
            self.kept = live.joined_by(self._requesters.clients())
        size_bytes = live.answer.command_bytes
        await self._requesters.tell(partial(self._send, live), self._served, size_bytes)

    def _send(self, live: LiveAnswer, requester: Requester) -> None:
        response = live.answer.addressed_to(requester.request_id)
        requester.permit.release()
        if live is self.kept:
            self.owner.leave(requester.cnx)
        entry_left = partial(live.leave, requester.cnx)
        if (refusal := self._refusal(response)) is not None:
            entry_left()
            requester.failed(requester.request_id, refusal)
            return
        paid_bytes = 0 if self._parts.live.direct.unbounded else response.command_bytes
        requester.cnx.enqueue(response.buffers, response.size, entry_left, paid_bytes)

    def _refusal(self, response: TopicsResponse) -> RequestError | None:
        """Return an error if a client's longer request id makes the frame too large, else None."""
        limit_bytes, total_size = self._parts.frame_limit_bytes, response.size - LENGTH_FIELD_BYTES
        if limit_bytes is None or total_size <= limit_bytes:
            return None
        return too_large_for_a_frame(total_size, limit_bytes)

    async def _fail(self, error: RequestError) -> None:
        await self._requesters.tell(partial(self._send_error, error), self._served)

    def _send_error(self, error: RequestError, requester: Requester) -> None:
        self._take_out(requester)
        requester.failed(requester.request_id, error)

    def _leave_unanswered(self, error: UnansweredRequestError, requester: Requester) -> None:
        self._take_out(requester)
        self._parts.unanswered.left(self._request.namespace, requester.cnx.peer, str(error))

    def _take_out(self, requester: Requester) -> None:
        requester.permit.release()
        self.owner.leave(requester.cnx)

    def _served(self, cnx: Connection) -> None:
        self._parts.served(self, cnx)
