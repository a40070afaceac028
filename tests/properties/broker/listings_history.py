"""A random history of a broker's listings: requests, departures, changes, losses.

No sockets: the history decides when entries leave and when the store answers.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

import proto.PulsarApi_pb2 as pb
from broker.listing.estimates import ListingEstimates
from broker.listing.handler import GetTopicsHandler
from broker.listing.lister import TopicLister
from broker.listing.rules import AnswerRules
from broker.patterns.filter import PatternFilter, PatternRules
from broker.patterns.pattern import RegexImplementation
from broker.stores.changes import TopicChanges
from broker.stores.memory import MemoryStore
from broker.stores.snapshots.snapshot import NamespaceSnapshot
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, SharedMemory
from limiter.memory.size_estimate import SizeEstimate
from proto.names import NamespaceName
from server.configuration.common import Profile
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.stand_in_broker import topic_names

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
NAMESPACES = [NamespaceName.parse(f"public/space-{number}") for number in range(3)]
LIST_BYTES = 6_000
LIMIT_BYTES = 20_000
TIMEOUT_SECONDS = 5.0


class Client:
    """A client's connection, as the handler sees it."""

    def __init__(self) -> None:
        self.entries: list[Callable[[], object]] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.gone = False

    def enqueue(
        self,
        buffers: Sequence[bytes],
        size_bytes: int,
        on_left: Callable[[], object],
        paid_bytes: int,
    ) -> None:
        assert sum(map(len, buffers)) == size_bytes
        if self.gone:
            on_left()
        else:
            self.entries.append(on_left)


class SlowStore(MemoryStore):
    """A store whose snapshots arrive at the history's command."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[None]] = []

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Wait to be told."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(told)
        await told
        return await super().snapshot(namespace)


class ListingsHistory:
    """The history's steps and the checks after each."""

    def __init__(self, random: Random, *, as_shipped: bool, private: bool) -> None:
        self.random = random
        self.clock = ManualClock()
        limit = MemoryLimit(LIMIT_BYTES, 50, TIMEOUT_SECONDS)
        policy = AdmissionPolicy.FIFO if as_shipped else AdmissionPolicy.FAIR
        self.limiter = AsyncDualMemoryLimiter(
            limit, limit, self.clock, rules=AdmissionRules(policy)
        )
        self.memory = PrivateMemory(self.limiter) if private else SharedMemory(self.limiter)
        self.store = SlowStore()
        lister = TopicLister(self.store)
        patterns = PatternRules(
            enabled=True,
            max_length=50,
            implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
            share=not as_shipped,
            timeout_seconds=1.0,
        )
        self.handler = GetTopicsHandler(
            lister,
            PatternFilter(patterns),
            ListingEstimates(SizeEstimate.EXACT, lister, anyone_resets=as_shipped),
            self.memory,
            AnswerRules.of(
                Profile.PULSAR if as_shipped else Profile.FLOODGATE, private_buffers=private
            ),
        )
        self.clients: list[Client] = []
        self.answered = self.waited = self.waited_with_heap = 0

    async def begin(self) -> None:
        """Put topics in."""
        for namespace in NAMESPACES:
            await self._add(namespace, LIST_BYTES // 100)

    async def step(self) -> None:
        """Take a random step and run its consequences."""
        steps = [self._ask, self._ask, self._listed, self._listed, self._listed, self._entry_leaves]
        steps += [self._client_leaves, self._wait, self._change]
        await self.random.choice(steps)()
        if self.random.random() < 0.8:  # Sometimes the next step comes in the same turn.
            await settle()
            self._look_at_who_waits()

    async def end(self) -> None:
        """Disconnect every client; then no resource may be held."""
        for client in list(self.clients):
            self._leave(client)
        assert [self.limiter.acquired_permits(one) for one in LimitType] == [0, 0]
        assert [self.limiter.queue_size(one) for one in LimitType] == [0, 0]
        await settle()

    # -- steps --------------------------------------------------------------------------------

    async def _ask(self) -> None:
        if len(self.clients) < 8 and (not self.clients or self.random.random() < 0.6):
            self.clients.append(Client())
        client, namespace = self.random.choice(self.clients), self.random.choice(NAMESPACES)
        request = pb.CommandGetTopicsOfNamespace(
            request_id=self.random.randrange(1 << 30), namespace=str(namespace)
        )
        if self.random.random() < 0.3:
            request.topics_pattern = f"{namespace}/.*{self.random.randrange(3)}"
        task = asyncio.get_running_loop().create_task(self._serve(request, namespace, client))
        client.tasks.add(task)
        task.add_done_callback(client.tasks.discard)

    async def _serve(
        self, request: pb.CommandGetTopicsOfNamespace, namespace: NamespaceName, client: Client
    ) -> None:
        try:
            await self.handler.serve(request, namespace, client)
        except RequestError:
            return
        self.answered += 1

    async def _listed(self) -> None:
        if self.store.waiting:
            told = self.store.waiting.pop(self.random.randrange(len(self.store.waiting)))
            if not told.done():
                told.set_result(None)

    async def _entry_leaves(self) -> None:
        sending = [client for client in self.clients if client.entries]
        if sending:
            self.random.choice(sending).entries.pop(0)()

    async def _client_leaves(self) -> None:
        if self.clients and self.random.random() < 0.3:
            self._leave(self.random.choice(self.clients))

    def _leave(self, client: Client) -> None:
        """End a connection: first its entries, then the rest, in one turn."""
        self.clients.remove(client)
        client.gone = True
        for on_left in client.entries:
            on_left()
        self.memory.cancel_owner(client)
        assert self.limiter.pinned_by(client) == {HEAP: 0, DIRECT: 0}
        for task in list(client.tasks):
            task.cancel()

    async def _wait(self) -> None:
        if self.random.random() < 0.1:
            self.clock.advance(TIMEOUT_SECONDS)

    async def _change(self) -> None:
        if self.random.random() < 0.3:
            await self._add(self.random.choice(NAMESPACES), 1)

    async def _add(self, namespace: NamespaceName, number: int) -> None:
        start = f"{namespace}-{self.random.randrange(1 << 30)}"
        names = [name.encode() for name in topic_names(start, number, 100)]
        await self.store.apply(namespace, TopicChanges(names))

    # -- rules --------------------------------------------------------------------------------

    def _look_at_who_waits(self) -> None:
        """Count waiters for direct memory, and those holding heap meanwhile.

        Per request: its client may hold heap for another request.
        """
        waiting = self.limiter.queue_size(DIRECT)
        self.waited += waiting > 0
        making = len([one for one in self.store.waiting if not one.done()])
        nobody_makes = not making and not self.limiter.queue_size(HEAP)
        self.waited_with_heap += bool(
            waiting and nobody_makes and self.limiter.acquired_permits(HEAP)
        )
