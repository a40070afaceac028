"""A message database as left by a broker, and its entries readable by SQLite alone after damage."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from broker.messages.stores.sqlite.database import ENTRY_BITS, is_intact

NAME = "messages.db"
_ENTRY_MASK = (1 << ENTRY_BITS) - 1


class Written(NamedTuple):
    """A database as left by a broker.

    Attributes:
        folder: Folder of its files.
        rows: Head and bytes of every entry by its row id.
        numbers: Topic and number of each entry's message.
    """

    folder: Path
    rows: dict[int, tuple[bytes, bytes]]
    numbers: dict[int, tuple[str, int]]

    @classmethod
    def in_folder(cls, folder: Path) -> Written:
        """Return the content of a database; entries of a topic are numbered in order."""
        rows: dict[int, tuple[bytes, bytes]] = {}
        numbers: dict[int, tuple[str, int]] = {}
        counts: Counter[str] = Counter()
        copy = folder.with_name("reading")
        shutil.copytree(folder, copy)
        with closing(sqlite3.connect(copy / NAME)) as connection:
            names = dict(connection.execute("SELECT topic_id, name FROM topics"))
            ledgers = dict(connection.execute("SELECT ledger_id, topic_id FROM ledgers"))
            for row_id, head, data in connection.execute("SELECT * FROM entries ORDER BY row_id"):
                topic = names[ledgers[row_id >> ENTRY_BITS]]
                rows[row_id], numbers[row_id] = (head, data), (topic, counts[topic])
                counts[topic] += 1
        shutil.rmtree(copy)
        return cls(folder, rows, numbers)

    def whole(self, folder: Path) -> dict[str, set[int]]:
        """Return the numbers of unaltered entries that SQLite can read from a damaged copy."""
        whole: dict[str, set[int]] = {topic: set() for topic, _ in self.numbers.values()}
        copy = folder.with_name("reading")
        shutil.copytree(folder, copy)
        try:
            with closing(sqlite3.connect(copy / NAME)) as connection:
                self._read_whole(connection, whole)
        except sqlite3.Error:
            pass  # Even SQLite cannot read further.
        shutil.rmtree(copy)
        return whole

    def _read_whole(self, connection: sqlite3.Connection, whole: dict[str, set[int]]) -> None:
        known = [row[1] for row in connection.execute("SELECT * FROM topics") if is_intact(row)]
        ledgers = connection.execute("SELECT * FROM ledgers").fetchall()
        ends = {row[0]: row[2] for row in ledgers if is_intact(row)}
        for row_id, row in self.rows.items():
            topic, number = self.numbers[row_id]
            there = row_id & _ENTRY_MASK < ends.get(row_id >> ENTRY_BITS, 0)
            if there and topic in known and row == _row(connection, row_id):
                whole[topic].add(number)


def _row(connection: sqlite3.Connection, row_id: int) -> tuple[bytes, bytes] | None:
    sql = "SELECT head, data FROM entries WHERE row_id = ?"
    try:
        found: tuple[bytes, bytes] | None = connection.execute(sql, (row_id,)).fetchone()
    except sqlite3.Error:
        return None
    return found
