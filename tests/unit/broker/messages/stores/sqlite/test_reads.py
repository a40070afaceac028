"""Reads of a message database that is damaged."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import EARLIEST
from tests.support.stores.message_stores import TOPIC, filled, opened, sqlite_store

if TYPE_CHECKING:
    from pathlib import Path

DAMAGES = (
    "UPDATE entries SET data = X'00' WHERE row_id & 255 IN ({})",
    "UPDATE entries SET data = 17 WHERE row_id & 255 IN ({})",
    "UPDATE entries SET data = 'text' WHERE row_id & 255 IN ({})",
    "UPDATE entries SET head = X'' WHERE row_id & 255 IN ({})",
    "DELETE FROM entries WHERE row_id & 255 IN ({})",
)


async def damaged(path: Path, damage: str, *numbers: int) -> None:
    """Write ten entries, and damage some of them."""
    async with opened(sqlite_store(path, per_ledger=100)) as store:
        await filled(await store.open_ledger(TOPIC), 10)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage.format(",".join(map(str, numbers))))
        connection.commit()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_all_that_is_whole_comes_where_damage_may_be_left_out(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given
    path = tmp_path / "messages.db"
    await damaged(path, damage, 0, 4, 5)
    async with opened(sqlite_store(path, skip_damaged=True)) as store:
        ledger = await store.open_ledger(TOPIC)
        # When
        with caplog.at_level(logging.WARNING):
            entries = await ledger.fetch(ledger.following(EARLIEST), 100, 1_000_000)
    # Then
    assert [entry.entry_id for entry in entries] == [1, 2, 3, 6, 7, 8, 9]
    assert "3 of the entries" in caplog.text
    assert str(path) in caplog.text


@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_is_before_the_damage_comes_and_then_a_sentence(
    damage: str, tmp_path: Path
) -> None:
    # Given
    path = tmp_path / "messages.db"
    await damaged(path, damage, 4, 5)
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        # When
        entries = await ledger.fetch(ledger.following(EARLIEST), 100, 1_000_000)
        # Then
        assert [entry.entry_id for entry in entries] == [0, 1, 2, 3]
        with pytest.raises(MessageStoreError, match=r"entry 2:4 is (damaged|missing)"):
            await ledger.fetch(ledger.following(entries[-1].position), 100, 1_000_000)
