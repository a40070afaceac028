"""A random history of flights: clients, their outbound entries, and a broker's changing list.

No sockets: the history decides when entries leave and when the broker answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import proto.PulsarApi_pb2 as pb
from broker.listing.responses import topics_response
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing, TopicSequence
from client.connection.errors import AnswerDeclinedError, DisconnectedError
from client.exceptions import ServerResponseError
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.flow.lookup_semaphore import LookupSemaphore
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from proto.frames import LARGE_FRAME_BYTES
from proto.topics_response import TopicsAnswer, read_topics_head
from proxy.errors import ErrorTranslation
from proxy.listing.exact_charging import ExactCharging
from proxy.listing.flight import Flight
from proxy.listing.flights import Flights, flight_key
from proxy.listing.requesters import Requester
from server.connection.request_errors import RequestError
from server.connection.unanswered_requests import UnansweredRequests
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.stand_in_broker import topic_names

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
NAMESPACE = "public/list"
LIST_BYTES = 6_000
LIMIT_BYTES = 20_000
"""Room for three lists: a fourth version has to wait."""
TIMEOUT_SECONDS = 5.0
LENGTH_FIELDS_BYTES = 8
ADDRESS = ("broker", 6650)
NEVER = "00000000"


@dataclass
class Sent:
    """An outbound entry."""

    data: bytes
    on_left: Callable[[], object]

    @property
    def live(self) -> object:
        """The entry's answer."""
        return self.on_left.func.__self__  # type: ignore[attr-defined]


@dataclass(eq=False)
class Client:
    """A client's connection, as flights see it; eq is identity."""

    peer: str
    gone: bool = False
    asked: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    entries: list[Sent] = field(default_factory=list)
    failures: list[RequestError] = field(default_factory=list)

    def enqueue(
        self,
        buffers: Sequence[bytes],
        size_bytes: int,
        on_left: Callable[[], object],
        paid_bytes: int,
    ) -> None:
        data = b"".join(buffers)
        assert len(data) == size_bytes == paid_bytes + LENGTH_FIELDS_BYTES
        if self.gone:
            on_left()
        else:
            self.entries.append(Sent(data, on_left))

    def failed(self, request_id: int, error: RequestError) -> None:
        del self.asked[request_id]
        self.failures.append(error)


@dataclass
class Pending:
    """A request unanswered by the broker."""

    request: pb.CommandGetTopicsOfNamespace
    admit: Callable[[int], bool]
    answer: asyncio.Future[TopicsAnswer]


class Broker:
    """The broker and its connection. Its list never returns to an earlier version."""

    peer = "broker"

    asks_for = None

    def __init__(self) -> None:
        self.versions: list[TopicListing] = []
        self.pending: list[Pending] = []
        self.change()

    def change(self) -> None:
        number = len(self.versions)
        names = topic_names(f"{NAMESPACE}-{number}", LIST_BYTES // 100, 100)
        self.versions.append(TopicListing(TopicSequence.from_names(map(str.encode, names))))

    async def get(self, _: object) -> Broker:
        return self

    async def topics_raw(
        self, request: pb.CommandGetTopicsOfNamespace, admit: Callable[[int], bool]
    ) -> TopicsAnswer:
        pending = Pending(request, admit, asyncio.get_running_loop().create_future())
        self.pending.append(pending)
        try:
            return await pending.answer
        finally:
            if pending in self.pending:
                self.pending.remove(pending)

    def answer(self, pending: Pending) -> None:
        """Answer with the current list, as ClientCnx passes it on."""
        self.pending.remove(pending)
        listing = self.versions[-1]
        unchanged = pending.request.topics_hash == listing.hash
        response = topics_response(
            1,
            EMPTY_LISTING if unchanged else listing,
            listing.hash,
            filtered=False,
            changed=not unchanged,
        )
        frame = b"".join(response.buffers)[4:]
        # The requester may have left in this very turn: an answer is still announced.
        large = len(frame) >= LARGE_FRAME_BYTES
        admitted = not large or pending.admit(len(frame))
        assert not (pending.answer.done() and large and admitted), "nobody holds what is admitted"
        if not pending.answer.done():
            if admitted:
                pending.answer.set_result(received(frame))
            else:
                pending.answer.set_exception(AnswerDeclinedError(len(frame)))

    def fail(self, pending: Pending, error: Exception) -> None:
        self.pending.remove(pending)
        if not pending.answer.done():
            pending.answer.set_exception(error)


def received(frame: bytes) -> TopicsAnswer:
    """Return an answer as received: in several chunks, undecoded."""
    parts = [memoryview(frame[start : start + 1_000]) for start in range(0, len(frame), 1_000)]
    found = read_topics_head(frame[:48])
    assert found is not None
    return TopicsAnswer(len(frame), parts, found[1])


class FlightsHistory:
    """A history, step by step, and the checks after each.

    Args:
        random: Source of choices.
        own_hashes: Whether clients send hashes of their lists.
        policy: Order of memory grants.
    """

    def __init__(self, random: Random, policy: AdmissionPolicy, *, own_hashes: bool) -> None:
        self.random = random
        self.own_hashes = own_hashes
        self.clock = ManualClock()
        limit = MemoryLimit(LIMIT_BYTES, 50, TIMEOUT_SECONDS)
        rules = AdmissionRules(policy)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock, rules=rules)
        self.lookups = LookupSemaphore(1_000)
        self.broker = Broker()
        self.flights = Flights(
            self.limiter,
            ExactCharging(self.limiter, patient=True),
            ErrorTranslation(),
            UnansweredRequests(self.clock),
            share=True,
        )
        self.clients: list[Client] = []
        self.answered = self.unchanged = 0
        self._started: dict[Flight, int] = {}
        self._next_id = 0

    async def step(self) -> None:
        """Take a random step and run its consequences."""
        steps = [self._ask, self._ask, self._answer, self._answer, self._answer, self._entry_leaves]
        steps += [self._entry_leaves, self._client_leaves, self._change, self._fail, self._wait]
        self.random.choice(steps)()
        if self.random.random() < 0.8:  # Sometimes the next step comes in the same turn.
            await settle()
            self.check_charge()

    # -- steps --------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._ask_for(self._client())

    def _ask_for(self, client: Client) -> None:
        request = pb.CommandGetTopicsOfNamespace(request_id=0, namespace=NAMESPACE)
        if self.own_hashes and self.random.random() < 0.5:
            listings = self.broker.versions[-3:]
            request.topics_hash = self.random.choice([NEVER, *[one.hash for one in listings]])
        self._next_id += 1
        permit = self.lookups.try_acquire(client)
        assert permit is not None
        requester = Requester(client, self._next_id, permit, client.failed)
        self.flights.join(requester, request, self.broker, ADDRESS)
        own = request.topics_hash if request.HasField("topics_hash") else None
        client.asked[self._next_id] = (self._newest_at_start(request), own)

    def _newest_at_start(self, request: pb.CommandGetTopicsOfNamespace) -> int:
        """Return the list version at a flight's start: joiners get this version or a newer one."""
        flight = self.flights._under_way[flight_key(request, ADDRESS)]
        return self._started.setdefault(flight, len(self.broker.versions) - 1)

    def _client(self) -> Client:
        if len(self.clients) < 8 and self.random.random() < 0.6:
            self.clients.append(Client(f"client-{self._next_id}"))
        return self.random.choice(self.clients or [self._new_client()])

    def _new_client(self) -> Client:
        self.clients.append(Client(f"client-{self._next_id}"))
        return self.clients[-1]

    def _answer(self) -> None:
        if self.broker.pending:
            self.broker.answer(self.random.choice(self.broker.pending))

    def _fail(self) -> None:
        if self.broker.pending and self.random.random() < 0.3:
            errors = [DisconnectedError("broker"), ServerResponseError(pb.MetadataError, "no")]
            error = self.random.choice(errors)
            self.broker.fail(self.random.choice(self.broker.pending), error)

    def _change(self) -> None:
        if self.random.random() < 0.5:
            self.broker.change()

    def _entry_leaves(self) -> None:
        holding = [one for one in self.clients if one.entries]
        if holding:
            client = self.random.choice(holding)
            self._leaves(client, client.entries.pop(0))

    def _client_leaves(self) -> None:
        if self.clients and self.random.random() < 0.5:
            self._leave(self.random.choice(self.clients))

    def _leave(self, client: Client) -> None:
        """End a connection: first its entries, then the rest, in one turn."""
        self.clients.remove(client)
        client.gone = True
        entries, client.entries = client.entries, []
        for entry in entries:
            self._leaves(client, entry)
        self.flights.cancel_owner(client)
        self.lookups.cancel_owner(client)
        assert self.limiter.pinned_by(client) == {HEAP: 0, DIRECT: 0}

    def _wait(self) -> None:
        if self.random.random() < 0.2:
            self.clock.advance(TIMEOUT_SECONDS)

    def _leaves(self, client: Client, entry: Sent) -> None:
        entry.on_left()
        self._check_answer(client, entry)

    # -- rules --------------------------------------------------------------------------------

    def _check_answer(self, client: Client, entry: Sent) -> None:
        """Check that the list was right at some moment since its flight started."""
        answer = pb.BaseCommand.FromString(entry.data[8:]).getTopicsOfNamespaceResponse
        started_at, own = client.asked.pop(answer.request_id)
        since = {one.hash: one for one in self.broker.versions[started_at:]}
        listing = since[answer.topics_hash]
        assert list(answer.topics) == (list(listing.names()) if answer.changed else [])
        assert answer.changed is (answer.topics_hash != own)
        self.answered += 1
        self.unchanged += not answer.changed

    def check_charge(self) -> None:
        """Check that each answer in flight is charged once, besides flights' reservations."""
        live = {entry.live for client in self.clients for entry in client.entries}
        charged = sum(one.answer.command_bytes for one in live)
        acquired = self.limiter.acquired_permits(DIRECT)
        if not len(self.flights):
            assert acquired == charged
            sharers = {client for client in self.clients if client.entries}
            assert self._accounts(DIRECT) == sharers
            assert self._accounts(HEAP) == set()
        assert charged <= acquired <= LIMIT_BYTES
        for flight in self.flights._under_way.values():
            waits = any(one.waiters for one in flight.owner.holders.values())
            assert not (waits and flight.kept), "nobody holds an answer while he waits for memory"
            if flight.owner.holders[DIRECT].waiters:
                held = flight.owner.holders[HEAP].held
                assert not held, "nobody holds heap while he waits for direct memory"
        large = [one for one in live if one.answer.command_bytes > LARGE_FRAME_BYTES]
        if not self.own_hashes:
            # Flights for the same list are sequential, and no version repeats.
            assert len({one.topics_hash for one in large}) == len(large)

    def _accounts(self, limit_type: LimitType) -> set[object]:
        """Return all accounts that share or wait."""
        return {account.owner for account in self.limiter.semaphore(limit_type).accounts()}

    async def end(self) -> None:
        """Disconnect every client; then no resource may be held."""
        for client in list(self.clients):
            self._leave(client)
        assert [self.limiter.acquired_permits(one) for one in LimitType] == [0, 0]
        assert [self.limiter.queue_size(one) for one in LimitType] == [0, 0]
        assert self.lookups.pending_requests == 0
        await settle()
        assert [self._accounts(one) for one in LimitType] == [set(), set()]
        assert (len(self.flights), len(self.flights.live), self.broker.pending) == (0, 0, [])
