"""SQLite tables of tenants, configuration, policies, imports and schemas."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.store import TenantInfo

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

INSIDE = "name > ? AND name < ?"
"""SQL condition for a tenant's namespaces; ``inside`` returns its values."""


class SqliteTables:
    """Access to the tables of an open SQLite file: tenants, policies, schemas and the like."""

    _connection: sqlite3.Connection

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    def _changed_rows(self, query: str, *values: object) -> int:
        return self._connection.execute(query, values).rowcount

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk has already rolled back; raise the original error.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # -- tables beside topics, see DatabaseTables ----------------------------------------------

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        return self._rows(_in_sqlite(query), *values)

    def made_of_texts(self, make: Callable[..., T], query: str, *values: object) -> list[T]:
        """Call ``make`` with the texts of each row that a query finds; return the results.

        A value of another type is an error.
        """
        return [make(*row) for row in texts(self.rows(query, *values))]

    def change(self, query: str, *values: object) -> int:
        """Run a statement that changes rows; return the number of changed rows."""
        return self._changed_rows(_in_sqlite(query), *values)

    def insert_tenant(self, name: str) -> None:
        """Insert a tenant without roles and clusters, unless it exists."""
        query = "INSERT OR IGNORE INTO tenants VALUES (?, ?, ?)"
        self._changed_rows(query, name, *TenantInfo().as_json())

    def delete_tenant(self, name: str) -> bool:
        """Delete a tenant that has no namespaces; return False if it does not exist."""
        with self._transaction():
            if self._rows(f"SELECT 1 FROM namespaces WHERE {INSIDE} LIMIT 1", *inside(name)):
                raise NamespaceNotEmptyError
            return self._changed_rows("DELETE FROM tenants WHERE name=?", name) == 1

    def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all message policies of the given names."""
        rows = [(name,) for name in names]
        with self._transaction():
            self._connection.executemany("DELETE FROM message_policies WHERE name=?", rows)

    def next_instance(self) -> int:
        """Return the number of earlier calls of this method, by any process."""
        with self._transaction():
            self._changed_rows("INSERT OR IGNORE INTO marks VALUES ('instances', 0)")
            before = int(self._rows("SELECT value FROM marks WHERE name='instances'")[0][0])
            self._changed_rows("UPDATE marks SET value=? WHERE name='instances'", before + 1)
        return before


@cache
def _in_sqlite(query: str) -> str:
    return re.sub(r"\$\d", "?", query.replace("{}", ""))


def inside(tenant: str) -> tuple[str, str]:
    """Return two texts between which, in sort order, the names of a tenant's namespaces are.

    The upper text ends with 0, which sorts directly after the slash.
    """
    return f"{tenant}/", f"{tenant}0"


def texts(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the given rows unchanged, after checking that all values are texts.

    A check is needed because SQLite accepts any type in any column.

    Raises:
        TypeError: A value is not a text.
    """
    for row in rows:
        for value in row:
            if not isinstance(value, str):
                raise TypeError(f"{type(value).__name__} where a text belongs")
    return rows
