"""Watchers of a set on socketless connections: tests control permits, reading and time."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import proto.PulsarApi_pb2 as pb
from broker.listing.rules import AnswerRules
from broker.watches.context import WatchTotals
from broker.watches.names.sorted_names import SortedNames
from broker.watches.sender import WatchSender
from broker.watches.sets.encoded_names import EncodedVersions
from broker.watches.sets.watched_sets import WatchedSet
from broker.watches.update_permit import SetUpdate, UpdatePermit
from broker.watches.watcher import LatestWatcher, OrderedWatcher, TopicListWatcher
from limiter.backoff import Backoff
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from limiter.permits.permit import Permit
from proto.topic_hash import in_java_order, topics_hash
from proto.watch_commands import encode_changes
from tests.support.clocks.counting_clock import CountingClock
from tests.support.clocks.settle import settle
from tests.support.watches.followed import full, watch_context
from tests.unit.server.connection.test_served_connection import Served

DIRECT = LimitType.DIRECT_MEMORY


def as_bytes(texts: Iterable[str]) -> list[bytes]:
    """Full names of topics, in Java's order."""
    return in_java_order(name.encode() for name in full(*texts))


class Watching:
    """A set, its watchers, and their update memory.

    Attributes:
        listed_again: Number of watchers' requests for a new listing, as shipped.
    """

    def __init__(
        self,
        *texts: str,
        as_shipped: bool = False,
        direct_bytes: int = 10_000,
        max_update_bytes: int = 10**6,
        max_frame_bytes: int = 0,
        private_buffers: bool = False,
    ) -> None:
        self.as_shipped = as_shipped
        self.clock = CountingClock()
        limit = MemoryLimit(direct_bytes, 10, 25.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock)
        self.memory: ResponseMemory = (PrivateMemory if as_shipped else SharedMemory)(self.limiter)
        self.totals = WatchTotals()
        self.watched = WatchedSet(".*", SortedNames.from_sorted(as_bytes(texts)), EncodedVersions())
        self.listed_again = 0
        self._max_update_bytes = max_update_bytes
        self._parts = watch_context(
            memory=self.memory,
            totals=self.totals,
            clock=self.clock,
            answers=AnswerRules(private_buffers, max_frame_bytes),
        )

    def connection(self, *, reads: bool = True) -> Served:
        """Return a client that reads everything, or nothing until ``takes``."""
        served = Served(as_shipped=self.as_shipped, pauses=False, keep_alive_seconds=0)
        served.peer.reads_at_once = reads
        return served

    def watcher(self, served: Served, watcher_id: int = 1) -> TopicListWatcher:
        """Return a watcher without an answer."""
        backoff = Backoff(jitter=lambda: 0.0)
        sender = WatchSender(self._parts, served.cnx, backoff, watcher_id, "t/n")
        watcher = self._of(sender)
        watcher.watch(self.watched)
        return watcher

    def _of(self, sender: WatchSender) -> TopicListWatcher:
        if not self.as_shipped:
            return LatestWatcher(sender, self.totals, self._max_update_bytes)
        return OrderedWatcher(sender, self.totals, self._max_update_bytes, self._list_again)

    def _list_again(self) -> None:
        self.listed_again += 1

    async def client(
        self, watcher_id: int = 1, *, reads: bool = True
    ) -> tuple[Client, TopicListWatcher]:
        """Return a client with an answered watch, and its watcher."""
        served = self.connection(reads=reads)
        watcher = self.watcher(served, watcher_id)
        await watcher.answer(1, None)
        client = Client(served)
        client.takes()
        return client, watcher

    def change(
        self,
        added: Iterable[str] = (),
        removed: Iterable[str] = (),
        also: TopicListWatcher | None = None,
    ) -> None:
        """Change the set and notify its watchers, as a namespace's follower does."""
        before, came, went = self.watched.names, as_bytes(added), as_bytes(removed)
        after = before
        for name in went:
            after = after.without_name(name)
        for name in came:
            after = after.with_name(name)
        self.watched.names = after
        permit = UpdatePermit()
        update = SetUpdate(before, after, encode_changes(came, went), permit)
        for watcher in (*self.watched.watchers, *([also] if also is not None else ())):
            watcher.changed(update)
        permit.all_told()

    async def full(self) -> Permit:
        """Take all direct memory."""
        return await self.limiter.acquire(DIRECT, self.limiter.available_permits(DIRECT))

    def give_back(self, permit: Permit) -> None:
        """Give direct memory back."""
        self.limiter.release(permit)

    @property
    def held_bytes(self) -> int:
        return self.limiter.acquired_permits(DIRECT)

    async def passes(self, seconds: float) -> None:
        await settle()
        self.clock.advance(seconds)
        await settle()


class Client:
    """A watch's far end: applies updates and checks each hash.

    Attributes:
        names: Known names; None before the answer.
        told: Added and removed names of each update.
        answers: The answered requests.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.names: set[str] | None = None
        self.told: list[tuple[list[str], list[str]]] = []
        self.answers: list[int] = []

    @property
    def known(self) -> list[str]:
        """The known names, without their common prefix."""
        return sorted(short(self.names or ()))

    def takes(self) -> int:
        """Read everything; return the number of frames."""
        served = self.served
        data = bytes(served.peer.received)
        served.peer.received.clear()
        if served.peer.get_write_buffer_size():
            data += served.takes()
            served.peer.received.clear()
        frames = list(commands(data))
        for command in frames:
            self._takes(command)
        return len(frames)

    async def takes_all(self) -> int:
        """Run all tasks, then read everything; return the number of frames."""
        await settle()
        return self.takes()

    def _takes(self, command: pb.BaseCommand) -> None:
        if command.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS:
            success = command.watchTopicListSuccess
            self.answers.append(success.request_id)
            self.names = set(success.topic)
            assert success.topics_hash == topics_hash(self.names)
            return
        assert command.type == pb.BaseCommand.WATCH_TOPIC_UPDATE, command
        update = command.watchTopicUpdate
        assert self.names is not None, "an update before the answer"
        assert not self.names.intersection(update.new_topics), "a name came that was there"
        assert self.names.issuperset(update.deleted_topics), "a name went that was not there"
        self.names = (self.names | set(update.new_topics)) - set(update.deleted_topics)
        assert update.topics_hash == topics_hash(self.names)
        self.told.append((short(update.new_topics), short(update.deleted_topics)))


def short(names: Iterable[str]) -> list[str]:
    """Return names without their common prefix."""
    return [name.removeprefix("persistent://t/n/") for name in names]


def commands(data: bytes) -> Iterable[pb.BaseCommand]:
    """Read frames."""
    while data:
        total, size = struct.unpack_from(">II", data)
        yield pb.BaseCommand.FromString(data[8 : 8 + size])
        data = data[4 + total :]
