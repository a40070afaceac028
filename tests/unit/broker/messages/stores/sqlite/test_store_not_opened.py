"""What is said of a message database that cannot be opened, and one that can although damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.sqlite.database import DatabaseFile
from tests.support.stores.message_stores import TOPIC, filled, opened, sqlite_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("code", "what_to_do"),
    [
        (sqlite3.SQLITE_FULL, "free some room on its disk, then start the broker again"),
        (sqlite3.SQLITE_NOTADB, "bring it back from a copy, or move it away"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "bring it back from a copy, or move it away"),
        (sqlite3.SQLITE_CANTOPEN, "the broker must read and write its folder"),
    ],
)
async def test_each_reason_has_its_own_advice(
    code: int, what_to_do: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    def fails(file: DatabaseFile, max_pages: int = 0) -> sqlite3.Connection:
        error = sqlite3.OperationalError("the reason")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(DatabaseFile, "writer", fails)
    path = tmp_path / "messages.db"
    # When, Then
    with pytest.raises(MessageStoreError, match=what_to_do) as found:
        await sqlite_store(path).open()
    assert f"the message database {path}" in str(found.value)


@pytest.mark.parametrize("value", ["", "x", "-5", "9" * 30, b"5"])
async def test_numbers_are_not_given_twice_although_what_is_stored_of_them_is_damaged(
    value: object, tmp_path: Path
) -> None:
    # Given
    path = tmp_path / "messages.db"
    async with opened(sqlite_store(path)) as store:
        (position,) = await filled(await store.open_ledger(TOPIC), 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE store SET value = ? WHERE key = 'ids'", (value,))
        connection.commit()
    # When
    async with opened(sqlite_store(path)) as store:
        # Then
        assert position.ledger_id < store.next_id() < 1 << 31
