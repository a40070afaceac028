"""A database connection with held or failing transactions."""

import sqlite3
from collections import deque
from threading import Event

import pytest

from broker.messages.stores.sqlite.database import DatabaseFile


class HeldConnection:
    """Wraps a connection for a message database's writer.

    Attributes:
        errors: Raised by the next transactions at their begin; None for success.
        transactions: Number of begun transactions, including failed.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._may_begin = Event()
        self._may_begin.set()
        self.errors: deque[Exception | None] = deque()
        self.transactions = 0

    def hold(self) -> None:
        self._may_begin.clear()

    def release(self) -> None:
        self._may_begin.set()

    def execute(self, statement: str, values: object = ()) -> sqlite3.Cursor:
        """Execute a statement once released."""
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
        self._connection.close()


def held_writers(monkeypatch: pytest.MonkeyPatch) -> list[HeldConnection]:
    """Wrap the writer connection of each opened database."""
    made: list[HeldConnection] = []
    writer = DatabaseFile.writer

    def held(file: DatabaseFile, max_pages: int = 0) -> HeldConnection:
        made.append(HeldConnection(writer(file, max_pages)))
        return made[-1]

    monkeypatch.setattr(DatabaseFile, "writer", held)
    return made
