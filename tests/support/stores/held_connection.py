"""A connection to a database whose transactions a test holds up, and lets fail."""

import sqlite3
from collections import deque
from threading import Event

import pytest

from broker.messages.stores.sqlite.database import DatabaseFile


class HeldConnection:
    """Stands before a connection, as far as the writer of a message database uses it.

    Attributes:
        errors: What the next transactions meet in place of beginning; None for nothing.
        transactions: How many were begun, also those that failed.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._may_begin = Event()
        self._may_begin.set()
        self.errors: deque[Exception | None] = deque()
        self.transactions = 0

    def hold(self) -> None:
        """Let the next transaction wait for ``release``."""
        self._may_begin.clear()

    def release(self) -> None:
        """Let transactions go on."""
        self._may_begin.set()

    def execute(self, statement: str, values: object = ()) -> sqlite3.Cursor:
        """Execute a statement, once it may be."""
        if statement.startswith("BEGIN"):
            self._may_begin.wait()
            self.transactions += 1
            error = self.errors.popleft() if self.errors else None
            if error is not None:
                raise error
        return self._connection.execute(statement, values)

    @property
    def in_transaction(self) -> bool:
        """True between begin and end."""
        return self._connection.in_transaction

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def held_writers(monkeypatch: pytest.MonkeyPatch) -> list[HeldConnection]:
    """Put a connection that can be held before the writer of each database that is opened."""
    made: list[HeldConnection] = []
    writer = DatabaseFile.writer

    def held(file: DatabaseFile, max_pages: int = 0) -> HeldConnection:
        made.append(HeldConnection(writer(file, max_pages)))
        return made[-1]

    monkeypatch.setattr(DatabaseFile, "writer", held)
    return made
