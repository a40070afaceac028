"""Consumers of every kind, disconnected together, reattach with one lookup at a time.

150 topics have a consumer, a reader and a producer each, three pattern consumers and some table
views, all of one client. Their namespace is unloaded three times, on a broker that admits a single
lookup at a time; then the same with the official Python client's consumers. On Floodgate and, where
a command names it, on a real broker.
"""

import asyncio
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pulsar

from client import Client, MessageId, Producer
from loadgen.places.server_process import ServerLaunch, running_server
from tests.proof.real_broker import COMMAND, real_broker
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs, rest
from tests.support.processes.free_port import free_port

NAMESPACE = "public/herd"
TOPICS, QUICK_TOPICS = 150, 20
VIEWS, PATTERNS = 20, 3
UNLOADS = 3
BACK_SECONDS = 60.0
LOOK_SECONDS = 0.05
ALONE, OFFICIAL = "consumers alone", "official consumers alone"
KEYS = {"maxConcurrentLookupRequest": "1"}


class Where(NamedTuple):
    name: str
    service_url: str
    web_url: str

    def put(self, path: str) -> None:
        """Send a PUT to its REST API."""
        rest(self.web_url, "PUT", path, {}, seconds=BACK_SECONDS)


@dataclass
class Group:
    """Consumers, readers or producers of one kind.

    Attributes:
        size: Number of members, one for each topic.
        attached_seconds: Time until all were attached.
        back_seconds: For each unload, time until all had the next message.
        missing: For each unload, members that never had it.
    """

    size: int
    attached_seconds: float = 0.0
    back_seconds: list[float] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    _seen: dict[int, dict[object, float]] = field(default_factory=lambda: defaultdict(dict))

    def saw(self, member: object, data: bytes) -> None:
        """Note that a member has a message; called by any thread."""
        self._seen[int(data)].setdefault(member, time.monotonic())

    def missing_now(self, number: int) -> int:
        """Return the number of members without a message."""
        return self.size - len(self._seen[number])

    def note(self, number: int, since: float) -> None:
        """Record the result of an unload."""
        self.missing.append(self.missing_now(number))
        latest = max(self._seen[number].values(), default=since)
        self.back_seconds.append(round(latest - since, 1))


Groups = dict[str, Group]


def prove(options: ProofOptions) -> ProofResult:
    """Unload the namespace and count reattached members, on each available broker."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    topics = [
        f"persistent://{NAMESPACE}/t-{number}"
        for number in range(QUICK_TOPICS if options.quick else TOPICS)
    ]
    with _floodgate(options) as where:
        _tried(where, topics, options, result)
    if COMMAND in os.environ:
        with _real() as where:
            _tried(where, topics, options, result)
    else:
        said = f"not tried on a real Pulsar: {COMMAND} names no command that starts one"
        result.check("a real broker", True, said)
    check_logs(options.out, result)
    return result


@contextmanager
def _floodgate(options: ProofOptions) -> Iterator[Where]:
    keys = {"brokerServicePort": "0", **LOCAL, **KEYS}
    with running_server(ServerLaunch("broker", keys, options.out / "broker.log")) as broker:
        yield Where("Floodgate", broker.service_url, broker.web_url)


@contextmanager
def _real() -> Iterator[Where]:
    port, web_port = free_port(), free_port()
    keys = {"brokerServicePort": str(port), "webServicePort": str(web_port), **KEYS}
    with real_broker(keys):
        yield Where("real", f"pulsar://127.0.0.1:{port}", f"http://127.0.0.1:{web_port}")


def _tried(where: Where, topics: Sequence[str], options: ProofOptions, result: ProofResult) -> None:
    groups = asyncio.run(_sent_away(where, topics, options))
    result.table = (
        result.table or "| broker | who | attached | back after each unload, s |\n|-|-|-|-|\n"
    )
    for name, group in groups.items():
        back = [
            f"{seconds}" + (f" ({missing} never)" if missing else "")
            for seconds, missing in zip(group.back_seconds, group.missing, strict=True)
        ]
        said = f"{group.size} {name}"
        attached = f"{group.attached_seconds:.1f}"
        result.table += f"| {where.name} | {said} | {attached} | {', '.join(back)} |\n"
        result.figures[f"{where.name}: {name}"] = {
            "attached_seconds": round(group.attached_seconds, 1),
            "back_seconds": group.back_seconds,
            "missing": group.missing,
        }
        if name != OFFICIAL:
            result.check(
                f"{where.name}: {name}",
                not any(group.missing),
                f"{where.name}: {said}, back after {', '.join(back)} s",
            )


async def _sent_away(where: Where, topics: Sequence[str], options: ProofOptions) -> Groups:
    await asyncio.to_thread(where.put, f"namespaces/{NAMESPACE}")
    alone = Group(len(topics))
    ours: Groups = {
        "consumers": Group(len(topics)),
        "readers": Group(len(topics)),
        "topics of consumers by pattern": Group(PATTERNS * len(topics)),
        "table views": Group(min(VIEWS, len(topics))),
    }
    official = Group(len(topics))
    async with Client(where.service_url) as publishing:
        producers = await asyncio.gather(
            *(publishing.create_producer(topic, send_timeout_millis=0) for topic in topics)
        )
        async with Client(where.service_url) as herd:
            await _attach(herd, topics, ours)
            await _rounds(where, producers, 0, ours, options)
        async with Client(where.service_url) as herd:
            await _all_of(alone, *(_consume(herd, topic, alone) for topic in topics))
            await _rounds(where, producers, 1 + UNLOADS, {ALONE: alone}, options)
        options.note(f"{where.name}: the official ones attach")
        opened = await asyncio.to_thread(_attach_official, where, topics, official)
        await _rounds(where, producers, 2 * (1 + UNLOADS), {OFFICIAL: official}, options)
        # It may wait forever for an unattached consumer.
        threading.Thread(target=opened.shutdown, daemon=True).start()
    return {**ours, ALONE: alone, OFFICIAL: official}


async def _rounds(
    where: Where, producers: Sequence[Producer], first: int, groups: Groups, options: ProofOptions
) -> None:
    """Publish to each topic; then unload the topics and publish again, repeatedly."""
    await _published(producers, first, groups)  # readers have a position once they read
    for number in range(first + 1, first + 1 + UNLOADS):
        options.note(f"{where.name}: {', '.join(groups)} are sent away")
        await asyncio.to_thread(where.put, f"namespaces/{NAMESPACE}/unload")
        since = time.monotonic()
        await _published(producers, number, groups)
        for group in groups.values():
            group.note(number, since)


async def _published(producers: Sequence[Producer], number: int, groups: Groups) -> None:
    """Publish a message to each topic, and wait until all members have theirs, or time out."""
    await asyncio.gather(
        *(producer.send(b"%d" % number, partition_key="all") for producer in producers)
    )
    for _ in range(int(BACK_SECONDS / LOOK_SECONDS)):
        if not any(group.missing_now(number) for group in groups.values()):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _attach(herd: Client, topics: Sequence[str], groups: Groups) -> None:
    consumers, readers, by_pattern, views = groups.values()

    async def read(topic: str) -> None:
        await herd.create_reader(
            topic,
            MessageId.latest,
            reader_listener=lambda _, one: readers.saw(topic, one.data()),
        )

    async def match(number: int) -> None:
        await herd.subscribe(
            re.compile(f"persistent://{NAMESPACE}/t-.*"),
            f"pattern-{number}",
            message_listener=lambda _, one: by_pattern.saw((number, one.topic_name()), one.data()),
        )

    async def view(topic: str) -> None:
        table = await herd.create_table_view(topic)
        table.for_each_and_listen(lambda _, data: views.saw(topic, data))

    await asyncio.gather(
        _all_of(consumers, *(_consume(herd, topic, consumers) for topic in topics)),
        _all_of(readers, *map(read, topics)),
        _all_of(by_pattern, *map(match, range(PATTERNS))),
        _all_of(views, *map(view, topics[:VIEWS])),
    )


async def _consume(herd: Client, topic: str, group: Group) -> None:
    await herd.subscribe(
        topic, "each", message_listener=lambda _, one: group.saw(topic, one.data())
    )


async def _all_of(group: Group, *attaching: Coroutine[object, object, None]) -> None:
    since = time.monotonic()
    await asyncio.gather(*attaching)
    group.attached_seconds = time.monotonic() - since


def _attach_official(where: Where, topics: Sequence[str], group: Group) -> pulsar.Client:
    """Subscribe in sequence: simultaneous lookups are refused and raise."""
    since = time.monotonic()
    opened = pulsar.Client(where.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    for topic in topics:
        opened.subscribe(
            topic,
            "official",
            message_listener=lambda _, one, topic=topic: group.saw(topic, one.data()),
        )
    group.attached_seconds = time.monotonic() - since
    return opened
