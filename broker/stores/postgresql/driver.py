"""Types for the PostgreSQL driver asyncpg, which is mostly untyped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

Value: TypeAlias = Any
"""A column of a row; the type depends on the query."""
Row: TypeAlias = Sequence[Any]


class Cursor(Protocol):
    """Rows fetched in batches."""

    async def fetch(self, n: int) -> list[Row]:
        """Return the next rows; empty at the end."""


class Connection(Protocol):
    """A connection for one statement at a time. Values are bound, $1 and up."""

    async def execute(self, query: str, *values: object) -> str:
        """Return the command's status, such as ``DELETE 3``."""

    async def fetch(self, query: str, *values: object) -> list[Row]:
        """Return all rows."""

    async def fetchrow(self, query: str, *values: object) -> Row | None:
        """Return the first row."""

    async def fetchval(self, query: str, *values: object) -> Value:
        """Return the first column of the first row; None without one."""

    def cursor(self, query: str, *values: object) -> Awaitable[Cursor]:
        """Open a cursor, within a transaction."""

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """Commit the block's statements, or roll back on an exception."""

    async def copy_records_to_table(
        self,
        table_name: str,
        *,
        records: Iterable[tuple[object, ...]],
        columns: Sequence[str] | None = None,
        schema_name: str | None = None,
    ) -> str:
        """Send rows with COPY."""

    async def add_listener(
        self, channel: str, callback: Callable[[Connection, int, str, str], None]
    ) -> None:
        """Call ``callback`` for every notification of a channel."""

    def add_termination_listener(self, callback: Callable[[Connection], None]) -> None:
        """Call ``callback`` when the connection ends."""

    def is_closed(self) -> bool:
        """Return whether the connection has ended."""

    def terminate(self) -> None:
        """End the connection immediately."""


class Pool(Protocol):
    """A bounded number of connections."""

    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection for the block."""

    async def close(self) -> None:
        """Close all connections; connections in use close on release."""

    def terminate(self) -> None:
        """End all connections immediately."""
