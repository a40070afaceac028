"""A process of thousands of this project's clients, each with one pattern consumer.

``python -m tests.proof.consumers.storm_clients URL FAMILY FIRST COUNT GROUPS`` makes the clients
from FIRST on and reports. Then it runs each command line of its standard input, and answers with a
line:

- ``subscribe``: all clients simultaneously, once.
- ``attached MOST_SECONDS``: wait until all subscribed clients are attached again to all their
  topics.
- ``receive TOKEN MOST_SECONDS``: each subscribed client receives this content from all its topics.
- ``report``: requests, held objects, and the size of a client.

Times are the machine's monotonic clock.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import uvloop

import proto.PulsarApi_pb2 as pb
from client import Client, ConsumerType, PulsarException
from client.connection.cnx import ClientCnx
from client.discovery.pattern_consumer import PatternConsumer
from client.discovery.topic_discovery import TopicListWatch
from limiter.clock import LoopClock, deadline
from loadgen.engine.connecting import raise_open_file_limit
from proto.topics_response import TopicsAnswer
from tests.proof.process_memory import peak_resident_bytes, resident_bytes

NAMESPACE = "public/storm"
TOPIC = f"persistent://{NAMESPACE}/group-"
TOPICS_EACH = 2
FILES_EACH = 2
OPERATION_SECONDS = 120
POLL_SECONDS = 0.05
SAMPLE = 50
"""Clients whose objects are measured."""


class Wire:
    """Requests of all clients."""

    def __init__(self) -> None:
        self.listings: list[float] = []
        self.connections: list[float] = []
        self.watches: list[float] = []
        self.list_bytes = 0
        self.failed: Counter[str] = Counter()
        self._list, self._connected = ClientCnx.topics_raw, ClientCnx.connected
        self._watch = TopicListWatch.open

    def tap(self) -> None:
        """Start to count."""
        wire = self

        async def topics_raw(cnx: ClientCnx, *arguments: Any) -> TopicsAnswer:
            wire.listings.append(time.monotonic())
            try:
                answer = await wire._list(cnx, *arguments)
            except PulsarException as error:
                wire.failed[type(error).__name__] += 1
                raise
            wire.list_bytes += answer.command_bytes
            return answer

        def connected(cnx: ClientCnx) -> None:
            wire.connections.append(time.monotonic())
            wire._connected(cnx)

        async def open_watch(
            watch: TopicListWatch, *arguments: Any
        ) -> pb.CommandWatchTopicListSuccess:
            wire.watches.append(time.monotonic())
            return await wire._watch(watch, *arguments)

        patch.object(ClientCnx, "topics_raw", topics_raw).start()
        patch.object(ClientCnx, "connected", connected).start()
        patch.object(TopicListWatch, "open", open_watch).start()


class Clients:
    """The clients of this process.

    Args:
        url: Of broker or proxy.
        family: Family of the discovery schedule.
        numbers: Of the clients.
        groups: Of topics; a client's pattern matches one group.
    """

    def __init__(self, url: str, family: str, numbers: range, groups: int) -> None:
        self._family, self._numbers, self._groups = family, numbers, groups
        self._resident_before = resident_bytes_here()
        self._clients = [Client(url, operation_timeout_seconds=OPERATION_SECONDS) for _ in numbers]
        self._consumers: list[PatternConsumer] = []
        self._restarts = 0
        self.wire = Wire()
        self.wire.tap()

    async def subscribe(self) -> dict[str, Any]:
        """Subscribe all clients simultaneously."""
        refused: Counter[str] = Counter()
        at = []

        async def one(number: int, client: Client) -> None:
            pattern = f"{TOPIC}{number % self._groups:05d}-.*"
            try:
                consumer = await client.subscribe(
                    pattern,
                    f"s-{number}",
                    ConsumerType.Shared,
                    is_pattern_topic=True,
                    discovery_schedule=self._family,
                )
            except PulsarException as error:
                refused[f"{type(error).__name__}: {error}"[:150]] += 1
            else:
                assert isinstance(consumer, PatternConsumer)
                self._consumers.append(consumer)
                at.append(time.monotonic())

        await asyncio.gather(*map(one, self._numbers, self._clients))
        gc.freeze()  # Freeze existing objects: scanning them repeatedly takes seconds.
        return {"at": at, "refused": refused}

    async def attached(self, most_seconds: float) -> dict[str, Any]:
        """Wait until all clients are attached again."""
        self._restarts += 1
        waiting, at = list(self._consumers), []
        give_up = time.monotonic() + most_seconds
        while waiting and time.monotonic() < give_up:
            await asyncio.sleep(POLL_SECONDS)
            left = [one for one in waiting if not self._is_back(one)]
            at += [time.monotonic()] * (len(waiting) - len(left))
            waiting = left
        return {"at": at, "refused": {"not attached": len(waiting)} if waiting else {}}

    def _is_back(self, consumer: PatternConsumer) -> bool:
        topics = consumer._topics.topics.values()
        return len(topics) == TOPICS_EACH and all(
            one.link.cnx is not None and one.reconnections >= self._restarts for one in topics
        )

    async def receive(self, token: str, most_seconds: float) -> dict[str, Any]:
        at = []

        async def one(consumer: PatternConsumer) -> None:
            topics: set[str] = set()
            while len(topics) < TOPICS_EACH:
                message = await consumer.receive()
                await consumer.acknowledge(message)
                if message.data() == token.encode():
                    topics.add(message.topic_name())
            at.append(time.monotonic())

        with suppress(TimeoutError):
            async with deadline(LoopClock(), most_seconds):
                await asyncio.gather(*map(one, self._consumers))
        missing = len(self._consumers) - len(at)
        return {"at": at, "refused": {"nothing received": missing} if missing else {}}

    def report(self) -> dict[str, Any]:
        """Return the requests and the held objects."""
        wire, resident = self.wire, resident_bytes_here()
        sizes = [size_of(client) for client in self._clients[:SAMPLE]]
        return {
            "listings": wire.listings,
            "connections": wire.connections,
            "watches": wire.watches,
            "watches_open": sum(one.discovery._watch.cnx is not None for one in self._consumers),
            "list_bytes": wire.list_bytes,
            "failed": wire.failed,
            "names_kept": max((len(one.discovery.names) for one in self._consumers), default=0),
            "names_found": max(names for _, _, names in sizes),
            "objects_each": sum(objects for objects, _, _ in sizes) / len(sizes),
            "object_bytes_each": sum(size for _, size, _ in sizes) / len(sizes),
            "resident_bytes": resident,
            "resident_peak_bytes": peak_resident_bytes(os.getpid()),
            "resident_bytes_each": (resident - self._resident_before) / len(self._clients),
        }


def resident_bytes_here() -> int:
    """Return the resident memory of this process."""
    return resident_bytes(os.getpid())


def size_of(client: Client) -> tuple[int, int, int]:
    """Return a client's objects, their bytes, and the number of topic names among them."""
    shared = (type, ModuleType, FunctionType, BuiltinFunctionType, uvloop.Loop, asyncio.Task)
    modules = {id(vars(module)) for module in tuple(sys.modules.values())}
    seen = {id(client)}
    todo: list[object] = [client]
    size = 0
    names = set()
    while todo:
        one = todo.pop()
        size += sys.getsizeof(one)
        if isinstance(one, str) and one.startswith(TOPIC) and "*" not in one:
            names.add(one)
        for part in gc.get_referents(one):
            if id(part) not in seen and id(part) not in modules and not isinstance(part, shared):
                seen.add(id(part))
                todo.append(part)
    return len(seen), size, len(names)


async def main(url: str, family: str, first: str, count: str, groups: str) -> None:
    """Make the clients, then run commands."""
    raise_open_file_limit(FILES_EACH * int(count))
    clients = Clients(url, family, range(int(first), int(first) + int(count)), int(groups))
    _say({"resident_bytes": resident_bytes_here()})
    read: Callable[[], str] = sys.stdin.readline
    while words := (await asyncio.get_running_loop().run_in_executor(None, read)).split():
        if words[0] == "subscribe":
            _say(await clients.subscribe())
        elif words[0] == "attached":
            _say(await clients.attached(float(words[1])))
        elif words[0] == "receive":
            _say(await clients.receive(words[1], float(words[2])))
        else:
            _say(clients.report())


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
