"""A flight: one request to the broker, and the clients that wait for its answer.

It runs in a task of its own, so that a client that leaves takes nothing from the others; when the
last one leaves before the answer, the flight ends in that turn and gives back what it holds.

The answer is not decoded: every client gets a new head with its own request id and the same
views of the received bytes, and their memory is given back when the last of them is sent. Until
then a later flight for the same list may give its clients these bytes: the broker is asked whether
they are right (proxy.listing.live_answers). Then they are everybody's, and nothing is charged.
While that question is under way those who wait hold the bytes too; but nobody waits for memory
while he does.
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
"""Most times the broker is asked for a list that grows faster than memory is granted."""


class FlightKey(NamedTuple):
    """The fields that two requests must have in common to share one flight.

    Attributes:
        asked: Those that must be the same to share the bytes of a list.
        topics_hash: The hash of the list that the client has already; None without.
    """

    asked: Hashable
    topics_hash: str | None


@dataclass(frozen=True, slots=True)
class FlightParts:
    """The parts of a proxy that all its flights work with.

    Attributes:
        charging: Reserves and charges the memory of answers.
        translation: Turns errors of brokers into those that clients are told.
        unanswered: Counts requests that are never answered.
        live: The answers that are on their way, for flights to come.
        frame_limit_bytes: What a frame's length field may say for clients; None: nobody looks.
        asks_again: A broker that goes before it answers is no error: another is asked, once.
        served: Told when a client waits for a flight no more.
    """

    charging: Charging
    translation: ErrorTranslation
    unanswered: UnansweredRequests
    live: LiveAnswers
    frame_limit_bytes: int | None
    asks_again: bool
    served: Callable[[Flight, Connection], None]


class Flight:
    """One broker request and all who wait for it; only its own methods change it.

    Attributes:
        owner: Those who wait for it, as the one holder of what is held for it; afterwards, those
            to whom its answer is on the way.
        open: Whether more may join: it has no answer yet, and has not ended without one.
        kept: Another flight's answer. While the broker is asked whether it is still right,
            everybody who waits is a reference of it.
        task: Its task, once it has started.
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

    # -- those who wait -----------------------------------------------------------------------

    def start(self) -> asyncio.Task[None]:
        """Ask the broker, in a task of its own."""
        self.task = asyncio.get_running_loop().create_task(self._fly())
        return self.task

    def add(self, requester: Requester) -> None:
        """Let one more request wait: it is part of all that is held for the flight."""
        self._requesters.add(requester)
        self.owner.join(requester.cnx)
        if self.kept is not None:
            self.kept.join(requester.cnx)

    def leave(self, cnx: Connection) -> None:
        """Take a client out; a flight that nobody waits for ends."""
        self._requesters.remove(cnx)
        if not self._requesters and self.task is not None:
            self.open = False
            # What ended it keeps its frame, and that the answer: nothing here may keep the task.
            task, self.task = self.task, None
            task.cancel()

    @property
    def _abandoned(self) -> bool:
        """True if everybody who waited has left; the task ends in its next turn."""
        return not any(holder.references for holder in self.owner.holders.values())

    # -- the answer ---------------------------------------------------------------------------

    async def _fly(self) -> None:
        """Fetch the answer and send it, or tell what went wrong; the exception boundary."""
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
            logger.exception("a listing of %s failed after an error of ours", self)
            await self._fail(RequestError(pb.UnknownError, f"{type(error).__name__}: {error}"))
        finally:
            self.open = False
            self._parts.live.forget_left(self.key.asked)
            # The answer on its way to clients is direct memory: they hold no heap, and count there
            # for nobody's share.
            self.owner.done_with(LimitType.HEAP_MEMORY)

    @asynccontextmanager
    async def answered(self) -> AsyncIterator[TopicsAnswer]:
        """Yield the answer, charged to those who wait; their heap is held until the block ends.

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
        """Ask the broker, or about an answer that is on its way; None if that settled nothing.

        A client that gave a hash of its own is served as it asked first: mostly its list is
        right, and that answer is small. Only when a list comes that there is no memory for, the
        broker is asked about the one that is held already.
        """
        asked, own_hash = self.key
        may_confirm = not self._questioned and (own_hash is None or self._declined)
        confirmation = may_confirm and self._parts.live.newest(asked, own_hash) is not None
        await charge.reserve(confirmation=confirmation)
        live = None
        if confirmation:
            # Kept only now: nobody waits for memory while he holds what others may wait for.
            self._questioned, live = True, self._parts.live.newest(asked, own_hash)
        if live is not None:
            self.kept = live.joined_by(self._requesters.clients())
        try:
            answer = await self._ask(charge, live)
        except RequestTooLargeError:
            if live is None:
                raise
            return None  # With the hash it is larger than what the client asked.
        if live is None:
            return answer
        right = live.or_another(answer, own_hash)
        if right is not live.answer:
            self._let_go()
        return right

    async def _ask(self, charge: Charge, live: LiveAnswer | None) -> TopicsAnswer:
        """Ask the broker, with the hash of an answer on its way instead of the client's own."""
        request = self._request
        if live is not None and live.topics_hash is not None:
            request = pb.CommandGetTopicsOfNamespace()
            request.CopyFrom(self._request)
            request.topics_hash = live.topics_hash
        self._broker = await self._brokers.get(self._address)
        return await self._broker.topics_raw(request, partial(self._admit, charge))

    def _admit(self, charge: Charge, total_size: int) -> bool:
        """Decide on an announced answer.

        What is announced is not the word that an older answer is right, so that is let go first.
        It may come in the very turn in which the last client left: then nobody is there to hold it.
        """
        self._let_go()
        return not self._abandoned and charge.admit(total_size)

    def _let_go(self) -> None:
        live, self.kept = self.kept, None
        if live is not None:
            live.left_by(self._requesters.clients())

    # -- telling clients ----------------------------------------------------------------------

    async def _distribute(self, answer: TopicsAnswer) -> None:
        """Queue the answer for everybody who waits.

        It is given as the bytes that are on their way already, where they are the same; these may
        have been fetched by a flight for clients with another hash.
        """
        live = self._parts.live.to_send(self.key.asked, answer, self.owner, self.kept)
        if self.kept is None and live.owner is not self.owner:
            # The other copy is given back when all have left its owner.
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
        """Refuse what only a client's longer request id makes larger than a frame may be."""
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
