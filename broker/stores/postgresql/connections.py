"""Connections to a PostgreSQL server: a bounded pool whose errors are one sentence."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, NoReturn

import asyncpg

from broker.stores.changes import StoreError
from broker.stores.store_url import without_password
from limiter.clock import clock_sleep, deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from broker.stores.postgresql.driver import Connection, Pool
    from limiter.clock import Clock

POOL_CONNECTIONS = 10
"""Connections for requests; one more listens. Requests wait CONNECT_SECONDS for one."""
CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
"""Longest time of one statement, in the server and, if that is gone, here."""
CLOSE_SECONDS = 5.0
BUSY_SECONDS = 0.05
"""Delay before another attempt to connect to a server that has no connection left."""
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    EOFError,
)
"""Errors of a database that become a StoreError."""


class PostgresqlConnections:
    """The pool of one store.

    Args:
        url: ``postgresql://user:password@host:port/database``, or what libpq takes in its place.
        clock: For timeouts and delays.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._pool: Pool | None = None
        self.shown_url = without_password(url)

    async def open(self) -> None:
        """Connect.

        Raises:
            StoreError: The server cannot be reached, or refuses the role.
        """
        with self._failures("cannot be opened"):
            self._pool = await asyncpg.create_pool(
                self._url, min_size=0, max_size=POOL_CONNECTIONS, **_options()
            )

    async def close(self) -> None:
        """Close the connections, those in use when they are given back."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with deadline(self._clock, CLOSE_SECONDS):
                await pool.close()
        except FAILURES:
            pool.terminate()

    async def connect(self) -> Connection:
        """Return a connection that is not of the pool.

        Raises:
            StoreError: The server cannot be reached.
        """
        with self._failures("cannot be reached"):
            connection: Connection = await asyncpg.connect(self._url, **_options())
            return connection

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """Take a connection of the pool for a while.

        Raises:
            StoreError: There is none, or a statement failed.
        """
        if self._pool is None:
            raise StoreError("the store is closed")
        with self._failures("failed"):
            async with self._acquired(self._pool) as connection:
                yield connection

    @asynccontextmanager
    async def _acquired(self, pool: Pool) -> AsyncIterator[Connection]:
        """Take a connection; where the server allows no more, wait for one that comes back."""
        give_up = self._clock.now() + CONNECT_SECONDS
        async with AsyncExitStack() as exits:
            connection: Connection | None = None
            while connection is None:
                try:
                    taking = pool.acquire(timeout=CONNECT_SECONDS)
                    connection = await exits.enter_async_context(taking)
                except asyncpg.TooManyConnectionsError:
                    if self._clock.now() >= give_up:
                        raise
                    await clock_sleep(self._clock, BUSY_SECONDS)
            yield connection

    def refuse(self) -> NoReturn:
        """Raise the error of a server that is known to be out of reach.

        Raises:
            StoreError: Always.
        """
        raise StoreError(self.sentence("failed", "the connection is lost, and made again"))

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except FAILURES as error:
            raise StoreError(self.sentence(what, str(error) or type(error).__name__)) from None

    def sentence(self, what: str, reason: object) -> str:
        """Return an error's sentence, without passwords."""
        return " ".join(f"metadataStoreUrl: {self.shown_url} {what}: {reason}".split())


def _options() -> dict[str, object]:
    milliseconds = str(int(1000 * STATEMENT_SECONDS))
    return {
        "timeout": CONNECT_SECONDS,
        "command_timeout": STATEMENT_SECONDS,
        "server_settings": {
            "application_name": "floodgate",
            "statement_timeout": milliseconds,
            "idle_in_transaction_session_timeout": milliseconds,
            # A plan that is kept suits the table as it was: one made for a nearly empty table
            # compares each of a million names with each of ten thousand.
            "plan_cache_mode": "force_custom_plan",
        },
    }
