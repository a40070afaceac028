"""A size-limited pool of PostgreSQL connections, which reports each error as one sentence.

The driver asyncpg is mostly untyped: Protocols declare the methods of it that are called here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import asyncpg

from broker.stores.changes import StoreError
from broker.stores.store_url import without_password
from limiter.clock import clock_sleep, deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from contextlib import AbstractAsyncContextManager

    from limiter.clock import Clock

Value: TypeAlias = Any
"""A column of a row; the type depends on the query."""
Row: TypeAlias = Sequence[Any]


class Cursor(Protocol):
    """An interface with the method of asyncpg's cursor that is called here."""

    async def fetch(self, n: int) -> list[Row]:
        """Return up to ``n`` further rows of the result; an empty list at its end."""


class Connection(Protocol):
    """An interface with the methods of asyncpg's connection that a store calls.

    The connection runs one statement at a time. Values are bound to the placeholders $1, $2 and so
    on.
    """

    async def execute(self, query: str, *values: object) -> str:
        """Run a statement; return its status, such as ``DELETE 3``."""

    async def fetch(self, query: str, *values: object) -> list[Row]:
        """Run a query; return all its rows."""

    async def fetchrow(self, query: str, *values: object) -> Row | None:
        """Run a query; return its first row, or None if it has no rows."""

    async def fetchval(self, query: str, *values: object) -> Value:
        """Run a query; return the first column of its first row, or None if it has no rows."""

    def cursor(self, query: str, *values: object) -> Awaitable[Cursor]:
        """Open a cursor for a query, within a transaction."""

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """Commit the statements of the ``with`` block; roll back on an exception."""

    async def copy_records_to_table(
        self,
        table_name: str,
        *,
        records: Iterable[tuple[object, ...]],
        columns: Sequence[str] | None = None,
        schema_name: str | None = None,
    ) -> str:
        """Insert rows into a table with COPY."""

    async def add_listener(
        self, channel: str, callback: Callable[[Connection, int, str, str], None]
    ) -> None:
        """Call ``callback`` for every notification on a channel."""

    def add_termination_listener(self, callback: Callable[[Connection], None]) -> None:
        """Call ``callback`` when the connection is closed or lost."""

    def is_closed(self) -> bool:
        """Return True if the connection is closed."""

    def terminate(self) -> None:
        """Close the connection immediately, without waiting for the server's answer."""


class Pool(Protocol):
    """An interface with the methods of asyncpg's pool (of connections) that a store calls."""

    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection of the pool during the ``with`` block."""

    async def close(self) -> None:
        """Close all connections of the pool, those in use once they are released."""

    def terminate(self) -> None:
        """Close all connections of the pool immediately, even those in use."""


POOL_CONNECTIONS = 10
"""Connections for requests, beside the listening connection. Requests wait CONNECT_SECONDS."""
CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
"""Time limit of a statement, kept by the server and, if the server is gone, by the client."""
CLOSE_SECONDS = 5.0
BUSY_SECONDS = 0.05
"""Delay before reconnecting to a server without a free connection."""
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    EOFError,
)
"""Database errors converted to StoreError."""


class PostgresqlConnections:
    """A store's pool of connections to a PostgreSQL server.

    Args:
        url: ``postgresql://user:password@host:port/database``, or another form accepted by libpq.
        clock: For timeouts and delays.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._pool: Pool | None = None
        self.shown_url = without_password(url)

    async def open(self) -> None:
        """Open the pool of connections to the database server.

        Raises:
            StoreError: The server is unreachable, or refuses the role.
        """
        with self._failures("cannot be opened"):
            self._pool = await asyncpg.create_pool(
                self._url, min_size=0, max_size=POOL_CONNECTIONS, **_options()
            )

    async def close(self) -> None:
        """Close all connections of the pool, those in use once they are released."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with deadline(self._clock, CLOSE_SECONDS):
                await pool.close()
        except FAILURES:
            pool.terminate()

    async def connect(self) -> Connection:
        """Open a separate connection, which does not belong to the pool.

        Raises:
            StoreError: The server is unreachable.
        """
        with self._failures("cannot be reached"):
            connection: Connection = await asyncpg.connect(self._url, **_options())
            return connection

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """Hold a connection of the pool during the ``with`` block.

        Raises:
            StoreError: No connection is available, or a statement failed.
        """
        if self._pool is None:
            raise StoreError("the store is closed")
        with self._failures("failed"):
            async with self._acquired(self._pool) as connection:
                yield connection

    @asynccontextmanager
    async def _acquired(self, pool: Pool) -> AsyncIterator[Connection]:
        """Acquire a connection; if the server has no free one, wait up to CONNECT_SECONDS."""
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
        """Raise the error for requests made while the database server is unreachable.

        Raises:
            StoreError: Always.
        """
        raise StoreError(self.sentence("failed", "the connection is lost; reconnecting"))

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        """Convert a database error in the ``with`` block to a StoreError of one sentence."""
        try:
            yield
        except FAILURES as error:
            raise StoreError(self.sentence(what, str(error) or type(error).__name__)) from None

    def sentence(self, what: str, reason: object) -> str:
        """Return an error as one sentence, which shows no password."""
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
            # A cached plan fits the table's state at planning: a plan for a nearly empty table
            # compares each of a million names with each of ten thousand.
            "plan_cache_mode": "force_custom_plan",
        },
    }
