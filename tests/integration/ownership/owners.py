"""Brokers' ownership on one database, without the rest of a broker."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.ownership.ownership import Bundle, NotServedError
from broker.ownership.session import BrokerSession
from broker.ownership.shared import SharedOwnership
from broker.ownership.tables import MEMORY_PREFIX, Registration
from broker.stores.postgresql.connections import FAILURES
from broker.stores.postgresql.store import PostgresqlStore
from limiter.clock import LoopClock, elapsed_seconds
from server.configuration.addresses import ServerUrls

CACHE_BYTES = 100_000
LONG_SECONDS = 60.0


class Party:
    """A broker's ownership.

    Attributes:
        ownership: Under test.
        lost: Reported lost bundles.
        has_lost: Set at the first loss.
        moved: Bundles that other brokers served before, or that are gone.
        has_moved: Set at the first move.
        forgets: Whether it can delete its data of moved bundles.
        stopped_seconds: Time that passed unnoticed.
    """

    def __init__(self, url: str, port: int, store: str, lease_seconds: float) -> None:
        self.store = PostgresqlStore(url, CACHE_BYTES)
        self.stopped_seconds = 0.0
        self.service_url = f"pulsar://127.0.0.1:{port}"
        self.registration = Registration(
            ServerUrls(self.service_url, f"http://127.0.0.1:{port + 1}"), store
        )
        self.session = BrokerSession(
            self.store.connect, FAILURES, lease_seconds, LoopClock(), self._elapsed
        )
        self.ownership = SharedOwnership(self.store, self.store.use, self.session, LoopClock())
        self.lost: list[Bundle] = []
        self.has_lost = asyncio.Event()
        self.moved: list[Bundle] = []
        self.has_moved = asyncio.Event()
        self.forgets = True
        self.closing = asyncio.Event()
        self.closing.set()
        self.ownership.on_lost(self._lost)
        self.ownership.on_moved(self._moved)

    def _elapsed(self) -> float:
        return elapsed_seconds() + self.stopped_seconds

    def _lost(self, bundle: Bundle) -> asyncio.Future[bool]:
        self.lost.append(bundle)
        self.has_lost.set()
        return asyncio.ensure_future(self.closing.wait())

    async def _moved(self, bundle: Bundle) -> None:
        self.moved.append(bundle)
        self.has_moved.set()
        if not self.forgets:
            raise NotServedError("the disk is gone")

    async def open(self) -> None:
        await self.store.open()
        await self.ownership.open(*self.registration)

    async def close(self) -> None:
        await self.ownership.close()
        await self.store.close()

    async def die(self) -> None:
        """End like a killed process, without notifying brokers."""
        self.session._id = ""
        await self.close()


@asynccontextmanager
async def party(
    url: str, port: int, store: str = "", lease_seconds: float = LONG_SECONDS
) -> AsyncIterator[Party]:
    """Open a broker's ownership for the length of a block."""
    one = Party(url, port, store or MEMORY_PREFIX + uuid.uuid4().hex, lease_seconds)
    await one.open()
    try:
        yield one
    finally:
        await one.close()
