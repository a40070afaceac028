"""Charging in front of a stand-in broker, with a limiter on a manual clock."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import proto.PulsarApi_pb2 as pb
from client.connection.pool import ConnectionPool
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from proxy.brokers import PROXY_OPTIONS, BrokerConnections
from proxy.errors import ErrorTranslation
from proxy.listing.charging import Charging
from proxy.listing.flight import Flight, FlightKey, FlightParts
from proxy.listing.live_answers import LiveAnswers
from server.connection.unanswered_requests import UnansweredRequests
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.stand_in_broker import StandInBroker, topic_names

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
PLENTY = 1_000_000
BIG, SMALL = "public/big", "public/small"
NAMES = topic_names(BIG, 1_000, 100)
NAME_BYTES = 100_000
ESTIMATE_BYTES = NAME_BYTES + 1_000 * 32
COMMAND_BYTES = pb.BaseCommand(
    type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(
        request_id=0, topics=NAMES, filtered=False, topics_hash="12345678", changed=True
    ),
).ByteSize()


@dataclass
class Setup:
    """The subject under test and the surroundings.

    Attributes:
        charging: The subject.
        limiter: The subject's limiter.
        broker: The stand-in broker.
        clock: The limiter's clock.
        held: Heap and direct bytes held at the arrival of each answer.
    """

    charging: Charging
    limiter: AsyncDualMemoryLimiter
    broker: StandInBroker
    clock: ManualClock
    brokers: BrokerConnections
    address: tuple[str, int]
    held: list[tuple[int, int]] = field(default_factory=list)

    async def list_topics(self, namespace: str = BIG) -> list[str]:
        """Return a client's answer, and release the answer's direct memory."""
        request = pb.CommandGetTopicsOfNamespace(request_id=1, namespace=namespace)
        owner = self.limiter.share(namespace)
        owner.join("client")
        parts = FlightParts(
            self.charging,
            ErrorTranslation(),
            UnansweredRequests(self.clock),
            LiveAnswers(self.limiter, remembers=False),
            frame_limit_bytes=None,
            asks_again=False,
            served=lambda *_: None,
        )
        key = FlightKey(namespace, None)
        flight = Flight(key, request, self.brokers, self.address, owner, parts)
        async with flight.answered() as answer:
            self.held.append((self.acquired(HEAP), self.acquired(DIRECT)))
            topics = list(answer.decoded().topics)
        owner.leave("client")
        return topics

    def acquired(self, limit_type: LimitType) -> int:
        """Return the held bytes of a budget."""
        return self.limiter.acquired_permits(limit_type)


@asynccontextmanager
async def charging_setup(
    make: Callable[[AsyncDualMemoryLimiter], Charging],
    heap: int = PLENTY,
    direct: int = PLENTY,
    queue: int = 10,
) -> AsyncIterator[Setup]:
    """Run a stand-in broker with the namespaces BIG and SMALL for the length of a block."""
    clock = ManualClock()
    limiter = AsyncDualMemoryLimiter(
        MemoryLimit(heap, queue, 25), MemoryLimit(direct, queue, 25), clock
    )
    broker = StandInBroker({BIG: NAMES, SMALL: topic_names(SMALL, 3)})
    server = await broker.serve()
    pool = ConnectionPool(PROXY_OPTIONS, clock)
    address = ("127.0.0.1", server.sockets[0].getsockname()[1])
    brokers = BrokerConnections(pool)
    try:
        yield Setup(make(limiter), limiter, broker, clock, brokers, address)
    finally:
        await pool.close()
        server.close()
