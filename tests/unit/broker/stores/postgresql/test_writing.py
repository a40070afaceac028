"""A change of very many names, written in steps."""

import threading
from collections.abc import Iterable
from itertools import chain
from typing import Any, cast

import pytest

from broker.stores.changes import TopicChanges
from broker.stores.postgresql import writing
from broker.stores.postgresql.writing import NameSet

NAMES = [f"persistent://t/n/{number:05d}".encode() for number in range(25_000)]


class Connection:
    """Notes the names of each statement."""

    def __init__(self) -> None:
        self.statements: list[list[bytes]] = []

    async def execute(self, _: str, __: int, names: list[bytes]) -> None:
        self.statements.append(names)

    async def copy_records_to_table(
        self, _: str, records: Iterable[tuple[int, bytes]], **__: object
    ) -> None:
        self.statements.append([name for _, name in records])


async def written(changes: TopicChanges, *, fresh: bool) -> list[list[bytes]]:
    connection = Connection()
    await writing._write_many(cast("Any", connection), 1, changes, fresh=fresh)
    return connection.statements


async def test_a_duplicate_name_is_copied_once() -> None:
    statements = await written(TopicChanges([*NAMES, NAMES[0], *NAMES[-5:]]), fresh=True)
    assert list(map(len, statements)) == [10_000, 10_000, 5_000]
    assert [*chain(*statements)] == NAMES


async def test_a_name_that_is_also_removed_is_not_added() -> None:
    statements = await written(TopicChanges(NAMES, NAMES[1:]), fresh=False)
    assert list(map(len, statements)) == [10_000, 10_000, 4_999, 1]
    assert statements[-1] == NAMES[:1]


async def test_new_names_are_computed_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # A set of a million names, in the loop, grew in a turn of 35 ms.
    threads = list[threading.Thread]()

    class Noted(NameSet):
        def add(self, names: Iterable[bytes]) -> None:
            threads.append(threading.current_thread())
            super().add(names)

    monkeypatch.setattr(writing, "NameSet", Noted)
    await written(TopicChanges(NAMES), fresh=True)
    assert threads
    assert threading.current_thread() not in threads
