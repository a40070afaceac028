"""Random histories of topics in message stores: always equal to a list.

A database is reopened, or its process killed. Afterwards the confirmed entries are there in order,
and no others.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.managed_ledger import CursorState, ManagedLedger
from tests.support.stores.message_stores import Noting, digest, message_store

NAMES = [f"persistent://t/n/{letter}" for letter in "ab"]
TOPICS = st.sampled_from(NAMES)
SUBSCRIPTIONS = st.sampled_from(["s1", "s2"])
MANY = settings(max_examples=60, stateful_step_count=40, deadline=None)


class Topic:
    """A topic as a list."""

    def __init__(self, ledger: ManagedLedger) -> None:
        # Id -> bytes and publish time of its entries.
        self.ledgers: dict[int, list[tuple[bytes, int]]] = {}
        self.cursors: dict[str, CursorState] = {}
        self.properties: dict[str, str] = {}
        self.opened(ledger)

    def opened(self, ledger: ManagedLedger) -> None:
        self.ledger = ledger
        self.noted = ledger.listener = Noting()
        self.open_id = ledger.ledgers[-1].ledger_id
        self.rolled()

    def rolled(self) -> None:
        """Switch to the new open ledger; an empty predecessor is gone."""
        self.open_id = self.ledger.ledgers[-1].ledger_id
        self.ledgers = {key: entries for key, entries in self.ledgers.items() if entries}
        self.ledgers.setdefault(self.open_id, [])

    @property
    def entries(self) -> list[tuple[Position, bytes, int]]:
        return [
            (Position(ledger_id, number), data, time)
            for ledger_id, entries in sorted(self.ledgers.items())
            for number, (data, time) in enumerate(entries)
        ]


class History(RuleBasedStateMachine):
    """Steps on topics, cursors and properties."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.topics: dict[str, Topic] = {}
        self.number = 0
        self.seen_ids: set[int] = set()

    def run(self, work: Coroutine[object, object, None]) -> None:
        self.loop.run_until_complete(work)

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.open_in(Path(self.folder.name))

    def open_in(self, folder: Path) -> None:
        self.path = folder
        self.store = message_store(self.kind, folder)
        self.run(self.store.open())

    def teardown(self) -> None:
        self.run(self.store.close())
        self.folder.cleanup()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    async def topic(self, name: str) -> Topic:
        ledger = await self.store.open_ledger(name)
        if name not in self.topics:
            self.topics[name] = Topic(ledger)
        elif self.topics[name].ledger is not ledger:
            self.topics[name].opened(ledger)
        return self.topics[name]

    # -- steps --------------------------------------------------------------------------------

    @rule(name=TOPICS, count=st.integers(1, 7), time=st.integers(0, 3), wait=st.booleans())
    def append(self, name: str, count: int, time: int, *, wait: bool) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            for _ in range(count):
                self.number += 1
                data = b"%d" % self.number * (self.number % 3 + 1)
                position = topic.ledger.append(data, digest(self.number + time, self.number % 2))
                entries = topic.ledgers.setdefault(position.ledger_id, [])
                assert position.entry_id == len(entries)
                entries.append((data, self.number + time))
                topic.rolled()
            if wait:
                await topic.ledger.flushed()
                assert topic.noted.last == position

        self.run(work())

    @rule(name=TOPICS, subscription=SUBSCRIPTIONS, bits=st.binary(max_size=9))
    def save_cursor(self, name: str, subscription: str, bits: bytes) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            mark = topic.ledger.last_confirmed
            state = CursorState(mark, {mark.ledger_id: bits}, {mark: (-1, 5)}, {"k": "ü"})
            topic.ledger.save_cursor(subscription, state)
            topic.cursors[subscription] = state
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS, subscription=SUBSCRIPTIONS)
    def delete_cursor(self, name: str, subscription: str) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            topic.ledger.delete_cursor(subscription)
            topic.cursors.pop(subscription, None)
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS, value=st.none() | st.text(max_size=3))
    def set_property(self, name: str, value: str | None) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            topic.ledger.set_property("epoch", value)
            topic.properties = {} if value is None else {"epoch": value}
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS)
    def roll(self, name: str) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            topic.ledger.roll()
            topic.rolled()
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS, at=st.floats(0, 1))
    def trim(self, name: str, at: float) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            await topic.ledger.flushed()
            entries = topic.entries
            before = entries[int(at * (len(entries) - 1))][0] if entries else LATEST
            topic.ledger.trim(before, 0, 0)
            for ledger_id in sorted(topic.ledgers):
                if ledger_id != topic.open_id and ledger_id < before.ledger_id:
                    del topic.ledgers[ledger_id]
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS)
    def truncate(self, name: str) -> None:
        async def work() -> None:
            topic = await self.topic(name)
            await topic.ledger.flushed()
            topic.ledger.truncate()
            topic.ledgers = {topic.open_id: topic.ledgers[topic.open_id]}
            await topic.ledger.flushed()

        self.run(work())

    @rule(name=TOPICS)
    def delete(self, name: str) -> None:
        self.run(self.store.delete_ledger(name))
        self.topics.pop(name, None)
        assert not self.store.holds(name)

    @rule(name=TOPICS)
    def unload(self, name: str) -> None:
        self.store.close_ledger(name)

    # -- rules --------------------------------------------------------------------------------

    @invariant()
    def everything_is_there(self) -> None:
        async def work() -> None:
            for name in self.topics:
                topic = await self.topic(name)
                await topic.ledger.flushed()
                await self.compare(topic)
            total = sum(len(data) for topic in self.topics.values() for _, data, _ in topic.entries)
            assert self.store.room.taken.data_bytes == total

        self.run(work())

    async def compare(self, topic: Topic) -> None:
        ledger, entries = topic.ledger, topic.entries
        read = []
        position = EARLIEST
        while found := await ledger.fetch(position, 3, 20):
            read += [(one.position, one.data, one.publish_time) for one in found]
            position = Position(found[-1].ledger_id, found[-1].entry_id + 1)
        assert read == entries
        infos = {info.ledger_id: info.entries for info in ledger.ledgers}
        assert infos == {key: len(found) for key, found in topic.ledgers.items()}
        assert dict(ledger.cursors) == topic.cursors
        assert dict(ledger.properties) == topic.properties
        assert ledger.size_bytes == sum(len(data) for _, data, _ in entries)
        assert ledger.count(EARLIEST, LATEST) == len(entries)
        if entries:
            await self.compare_positions(ledger, entries)

    @staticmethod
    async def compare_positions(
        ledger: ManagedLedger, entries: list[tuple[Position, bytes, int]]
    ) -> None:
        positions = [position for position, _, _ in entries]
        assert ledger.last_confirmed == positions[-1]
        for index, position in enumerate(positions):
            behind = positions[index + 1] if index + 1 < len(positions) else None
            assert behind is None or ledger.following(position) == behind
            before = positions[index - 1] if index else Position(position.ledger_id, -1)
            assert ledger.preceding(position) == before
            assert ledger.count(EARLIEST, position) == index + 1
            assert ledger.at(EARLIEST, index + 1) == position
            entry = await ledger.entry(position)
            assert entry is not None
            assert entry.data == entries[index][1]
        first = Position(positions[0].ledger_id, -1)
        sizes = sum(len(data) for _, data, _ in entries)
        assert ledger.size_between(first, positions[-1]) == sizes
        times = [time for _, _, time in entries]
        if times == sorted(times):
            for time in {times[0], times[len(times) // 2], times[-1]}:
                assert await ledger.published_at(time) == positions[times.index(time)]


class SqliteHistory(History):
    """The history on a database, whose broker stops and is killed now and then."""

    kind = "sqlite"

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        self.open_in(self.path)

    @rule(name=TOPICS, stored=st.integers(0, 7), lost=st.integers(0, 7))
    def kill(self, name: str, stored: int, lost: int) -> None:
        """Reopen the present files while the last entries wait for their write."""
        left = self.path / "left"
        left.mkdir()

        async def work() -> None:
            topic = await self.topic(name)
            for number in range(stored + lost):
                if number == stored:
                    await topic.ledger.flushed()
                self.number += 1
                data = b"%d" % self.number
                position = topic.ledger.append(data, digest(self.number))
                if number < stored:
                    entries = topic.ledgers.setdefault(position.ledger_id, [])
                    entries.append((data, self.number))
                    topic.rolled()
            if not lost:
                await topic.ledger.flushed()
            for file in ("messages.db", "messages.db-wal"):
                shutil.copy(self.path / file, left / file)

        self.run(work())
        self.run(self.store.close())
        self.open_in(left)


class FetchedHistory(SqliteHistory):
    """The same with every read from the database."""

    kind = "sqlite with nothing in memory"


@pytest.mark.parametrize("history", [History, SqliteHistory, FetchedHistory])
def test_a_message_store_equals_a_list_after_any_history(history: type[History]) -> None:
    # A database is made for each history: fewer take as long.
    few = settings(MANY, max_examples=MANY.max_examples // 4)
    run_state_machine_as_test(history, settings=MANY if history is History else few)
