"""Types of the PostgreSQL driver (asyncpg), which has few of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

Value: TypeAlias = Any
"""A column of a row; its type is the query's."""
Row: TypeAlias = Sequence[Any]


class Cursor(Protocol):
    """Rows that are fetched some at a time."""

    async def fetch(self, n: int) -> list[Row]:
        """Return the next rows; none at the end."""


class Connection(Protocol):
    """A connection: one statement at a time. Values are bound, $1 and up."""

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
        """Commit what the block does, or roll it back when it raises."""

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
        """Call back with every notification of a channel."""

    def add_termination_listener(self, callback: Callable[[Connection], None]) -> None:
        """Call back when the connection has ended."""

    def is_closed(self) -> bool:
        """Return whether the connection has ended."""

    def terminate(self) -> None:
        """End it at once."""


class Pool(Protocol):
    """A bounded number of connections."""

    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]:
        """Take a connection for a block."""

    async def close(self) -> None:
        """End all, those in use when they are given back."""

    def terminate(self) -> None:
        """End all at once."""
