"""Random histories of topics in message stores: they hold what a list would, whatever happens.

The log is closed and opened again, its process is killed, or the machine loses power. What was
confirmed is there afterwards, in order; of the rest any beginning may be.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

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

from broker.messages.managed_ledger import CursorState
from broker.messages.position import EARLIEST, LATEST, Position
from tests.support.stores.message_stores import (
    Noting,
    digest,
    log_store,
    message_store,
    small_segments,
)
from tests.support.stores.simulated_files import SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from broker.messages.managed_ledger import ManagedLedger

NAMES = [f"persistent://t/n/{letter}" for letter in "ab"]
TOPICS = st.sampled_from(NAMES)
SUBSCRIPTIONS = st.sampled_from(["s1", "s2"])
# Where a history ends: before the write, behind it, behind the sync, behind the confirmation.
POINTS = st.sampled_from(["appended", "written", "synced", "confirmed"])
MANY = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.fixture(autouse=True, scope="module", params=[400, 4_000])
def segment_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    yield from small_segments(request.param)


class Topic:
    """A topic as a list knows it."""

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
        """Take over which ledger is open; an empty one before it is gone."""
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
    """What topics, their cursors and their properties go through."""

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
        self.store = message_store(self.kind)
        self.run(self.store.open())

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    async def topic(self, name: str) -> Topic:
        ledger = await self.store.open_ledger(name)
        if name not in self.topics:
            self.topics[name] = Topic(ledger)
        elif self.topics[name].ledger is not ledger:
            self.topics[name].opened(ledger)
        return self.topics[name]

    # -- what happens -------------------------------------------------------------------------

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

    # -- what must be so ----------------------------------------------------------------------

    @invariant()
    def everything_is_there(self) -> None:
        async def work() -> None:
            for name in self.topics:
                topic = await self.topic(name)
                await topic.ledger.flushed()
                self.compare(topic)
            total = sum(len(data) for topic in self.topics.values() for _, data, _ in topic.entries)
            assert self.store.stored_bytes == total

        self.run(work())

    def compare(self, topic: Topic) -> None:
        ledger, entries = topic.ledger, topic.entries
        read = []
        position = EARLIEST
        while found := ledger.read(position, 3, 20):
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
            self.compare_positions(ledger, entries)

    @staticmethod
    def compare_positions(
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
            entry = ledger.entry(position)
            assert entry is not None
            assert entry.data == entries[index][1]
        sizes = sum(len(data) for _, data, _ in entries[1:])
        assert ledger.size_between(positions[0], positions[-1]) == sizes
        times = [time for _, _, time in entries]
        if times == sorted(times):
            for time in {times[0], times[len(times) // 2], times[-1]}:
                assert ledger.published_at(time) == positions[times.index(time)]


class LogHistory(History):
    """The same of a log, which is closed and killed now and then."""

    kind = "log"

    @initialize()
    def start(self) -> None:
        self.files = SimulatedFiles()
        self.open_on(self.files)

    def open_on(self, files: SimulatedFiles) -> None:
        self.files = files
        self.store = log_store(files, fsync=self.kind == "log with fsync")
        self.run(self.store.open())

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        self.open_on(self.files)

    @rule()
    def clean(self) -> None:
        """Let the log copy and delete what it can."""

        async def work() -> None:
            while self.store.parts.cleaner.candidate() is not None:
                self.store.parts.cleaner.wake()
                await asyncio.sleep(0)

        self.run(work())

    @rule(name=TOPICS, count=st.integers(0, 7), point=POINTS)
    def kill(self, name: str, count: int, point: str) -> None:
        """Kill the process while entries are under way."""
        self.lose(name, count, point, SimulatedFiles.after_kill)

    def lose(
        self, name: str, count: int, point: str, survivors: Callable[..., SimulatedFiles]
    ) -> None:
        left: list[SimulatedFiles] = []
        confirmed: list[Position | None] = []
        under_way: list[tuple[bytes, int]] = []
        positions: list[Position] = []

        async def work() -> None:
            topic = await self.topic(name)
            await topic.ledger.flushed()

            def note(reached: str) -> None:
                if not left and reached == point:
                    confirmed.append(topic.noted.last)
                    left.append(survivors(self.files))

            self.files.on_reached = note
            for _ in range(count):
                self.number += 1
                under_way.append((b"%d" % self.number, self.number))
                positions.append(topic.ledger.append(under_way[-1][0], digest(self.number)))
            note("appended")
            await topic.ledger.flushed()
            self.files.on_reached = None
            note(point)

        self.run(work())
        self.run(self.store.close())
        self.open_on(left[0])
        last = confirmed[0] or EARLIEST
        self.run(self.adopt(name, under_way, sum(position <= last for position in positions)))

    async def adopt(self, name: str, under_way: list[tuple[bytes, int]], confirmed: int) -> None:
        """Take over which of the entries under way are there: those confirmed, and maybe more."""
        before = self.topics[name].entries
        topic = await self.topic(name)
        found = [
            (entry.position, entry.data, entry.publish_time)
            for info in topic.ledger.ledgers
            for entry in topic.ledger.read(Position(info.ledger_id, 0), 100, 10_000)
            if entry.ledger_id == info.ledger_id
        ]
        assert found[: len(before)] == before
        rest = [(data, time) for _, data, time in found[len(before) :]]
        assert rest == under_way[: len(rest)]
        assert len(rest) >= confirmed
        topic.ledgers = {}
        for position, data, time in found:
            topic.ledgers.setdefault(position.ledger_id, []).append((data, time))
        topic.rolled()


class SyncedLogHistory(LogHistory):
    """The same of a log with fsync, whose machine loses power."""

    kind = "log with fsync"

    @rule(name=TOPICS, count=st.integers(0, 7), point=POINTS, seed=st.integers(0, 99))
    def lose_power(self, name: str, count: int, point: str, seed: int) -> None:
        self.lose(name, count, point, lambda files: files.after_power_loss(Random(seed)))


@pytest.mark.parametrize("history", [History, LogHistory, SyncedLogHistory])
def test_a_store_holds_what_a_list_would(history: type[History]) -> None:
    run_state_machine_as_test(history, settings=MANY)
