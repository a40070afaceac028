"""What large topics and subscriptions hold up: the longest turn of the event loop for each.

A broker runs in this process, on the memory store and on the log. Its clients are in another
thread, whose time does not count: what counts is the processor time of the loop's own thread from
one turn to the next, dispatch, saving of cursors and collections of garbage included.

Where others use the machine, the same work takes up to three times the processor time: caches and
cores are shared. A group of cases of which one is above the bound is measured again, on new topics,
three times at most, and of each case the least counts. The longest turn by the clock is reported
beside it and not judged: it has what the system took meanwhile, as a slow disk does.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import Request, urlopen

import broker.schemas.avro.judge as judge
import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.messages.metadata import MessageDigest
from broker.messages.topic import PersistentTopic
from broker.service import BrokerService
from broker.subscriptions.subscription import Subscription
from proto.names import TopicName
from server.loop import run
from tests.proof.result import ProofResult
from tests.proof.servers import LOCAL
from tests.proof.sizes.consuming_client import ConsumingClient
from tests.support.processes.cluster import until
from tests.support.subscriptions.messages import message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tests.proof.result import ProofOptions

BOUND_MILLIS = 20.0
TRIES = 3
CHECK_SECONDS = 60.0
"""A schema is checked in another process, which may be slow here."""
ENTRIES, QUICK_ENTRIES = 1_000_000, 40_000
CONSUMERS, QUICK_CONSUMERS = 1_000, 50
UNACKED, QUICK_UNACKED = 50_000, 4_000
SCHEMA_BYTES = 1_000_000
KEYS = 1_000
TOPICS, QUICK_TOPICS = 10_000, 300
"""Topics with samples of their own, each with a subscription."""
LONG_ACK_IDS, SHORT_ACK_IDS = 20_000, 1_000
STORES = ("memory", "log")
ENTRIES_A_TURN = 1_000
Key_Shared, Shared = pb.CommandSubscribe.Key_Shared, pb.CommandSubscribe.Shared


@dataclass(frozen=True)
class Sizes:
    """How much there is of everything."""

    entries: int
    consumers: int
    unacked: int
    topics: int


def prove(options: ProofOptions) -> ProofResult:
    """Measure every case on both stores."""
    sizes = (
        Sizes(QUICK_ENTRIES, QUICK_CONSUMERS, QUICK_UNACKED, QUICK_TOPICS)
        if options.quick
        else Sizes(ENTRIES, CONSUMERS, UNACKED, TOPICS)
    )
    result = ProofResult()
    judge.SECONDS = CHECK_SECONDS
    for store in STORES:
        keys = {"floodgateMessageStore": f"log://{options.out}/log"} if store == "log" else {}
        run(_prove_store(options, store, keys, sizes, result))
    return result


async def _prove_store(
    options: ProofOptions, store: str, keys: Mapping[str, str], sizes: Sizes, result: ProofResult
) -> None:
    config = BrokerConfig.from_properties(
        {
            "brokerServicePort": "0",
            "floodgateProfile": "floodgate",
            "maxUnackedMessagesPerConsumer": "0",
            "maxUnackedMessagesPerSubscription": "0",
            "exposeTopicLevelMetricsInPrometheus": "true",
            "floodgateMaxMetricSubjects": str(2 * TOPICS),
            **LOCAL,
            **keys,
        }
    )
    async with BrokerService(config) as broker:
        turns = Turns(broker, store, sizes, result, options.note)
        await turns.all_cases()


class Turns:
    """The cases on one store; the mutable state is the result."""

    def __init__(
        self,
        broker: BrokerService,
        store: str,
        sizes: Sizes,
        result: ProofResult,
        note: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self._store = store
        self._sizes = sizes
        self._result = result
        self._note = note
        self._try = 0
        self._above = False
        self._least: dict[str, Turn] = {}

    async def all_cases(self) -> None:
        """Measure all, some again; judge the least."""
        groups = (
            self._consumers_join,
            self._redelivery,
            self._acknowledgement,
            self._cursors,
            self._schema,
            self._metrics,
        )
        for group in groups:
            for self._try in range(TRIES):
                self._above = False
                await group()
                if not self._above:
                    break
        for name, turn in self._least.items():
            self._result.figures[f"{self._store}, {name}"] = round(turn.cpu_millis, 2)
            self._result.figures[f"{self._store}, {name}, by the clock"] = round(turn.millis, 2)
            self._result.check(
                f"{self._store}: {name}",
                turn.cpu_millis <= BOUND_MILLIS,
                f"{self._store}: {name}: the longest turn takes {turn.cpu_millis:.1f} ms of "
                f"processor time; allowed are {BOUND_MILLIS:g} ms",
            )

    async def _measure(self, name: str, work: Awaitable[object]) -> None:
        """Do some work, and note the longest turn until it is done."""
        turn = await longest_turn(work)
        self._note(f"{self._store}: {name}: {turn.cpu_millis:.1f} ms")
        self._above = self._above or turn.cpu_millis > BOUND_MILLIS
        self._least[name] = min(turn, self._least.get(name, turn))

    # -- consumers ----------------------------------------------------------------------------

    async def _consumers_join(self) -> None:
        topic = await self._topic("joined", self._sizes.unacked)
        count = self._sizes.consumers
        client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        join = asyncio.to_thread(client.subscribe, str(topic.name), Key_Shared, count)
        await self._measure(f"{count:,} Key_Shared consumers join", join)
        each = self._sizes.unacked // count
        flow = asyncio.to_thread(client.receive, [each] * count, self._sizes.unacked // 2)
        await self._measure(f"{count:,} Key_Shared consumers have room", flow)
        other = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        join = asyncio.to_thread(other.subscribe, str(topic.name), Key_Shared, count)
        await self._measure(f"{count:,} join those that have messages", join)
        leave = self._left(client, topic, count)
        await self._measure(f"{count:,} leave with what they have", leave)
        await asyncio.to_thread(other.close)

    async def _redelivery(self) -> None:
        count = self._sizes.unacked
        for kind in (Shared, Key_Shared):
            kind_name = pb.CommandSubscribe.SubType.Name(kind)
            topic = await self._topic(f"redelivered-{kind_name}", count)
            client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
            await asyncio.to_thread(client.subscribe, str(topic.name), kind, 1)
            receive = asyncio.to_thread(client.receive, [count], count)
            await self._measure(f"{count:,} are delivered, {kind_name}", receive)
            again = asyncio.to_thread(client.redeliver_all, count)
            await self._measure(f"{count:,} are redelivered, {kind_name}", again)
            await asyncio.to_thread(client.close)

    async def _acknowledgement(self) -> None:
        count = self._sizes.unacked
        topic = await self._topic("acknowledged", count)
        client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        await asyncio.to_thread(client.receive, [count], count)
        ids = [(one.ledger_id, at) for one in topic.ledger.ledgers for at in range(one.entries)]
        again = asyncio.to_thread(client.redeliver, ids)
        await self._measure(f"{count:,} ids are given back", again)
        ack = asyncio.to_thread(client.acknowledge, ids, LONG_ACK_IDS)
        await self._measure(f"{count:,} ids in ACKs of {LONG_ACK_IDS:,}, all at once", ack)
        await asyncio.to_thread(client.close)
        await self._batches()

    async def _batches(self) -> None:
        count = self._sizes.unacked
        topic = await self._topic("batches", count, messages=10)
        client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        await asyncio.to_thread(client.receive, [10 * count], count)
        ids = [(one.ledger_id, at) for one in topic.ledger.ledgers for at in range(one.entries)]
        ack = asyncio.to_thread(client.acknowledge, ids, SHORT_ACK_IDS, (0b1111111110,))
        await self._measure(f"{count:,} batches are acknowledged in part", ack)
        await self._measure("a cursor with them is saved", self._saved(_only(topic)))
        await asyncio.to_thread(client.close)

    # -- cursors ------------------------------------------------------------------------------

    async def _cursors(self) -> None:
        entries = self._sizes.entries
        topic = await self._topic("large", 2 * entries)
        client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        subscription = _only(topic)
        await self._measure(f"{entries:,} holes are made", self._make_holes(subscription))
        await self._measure("a cursor with holes is saved", self._saved(subscription))
        web = self._broker.web_service_url
        path = f"{web}/admin/v2/persistent/{NAMESPACE}/large-{self._try}"
        for what in ("internalStats", "stats"):
            await self._measure(f"{what} of them", asyncio.to_thread(_fetched, f"{path}/{what}"))
        one = self._acknowledged_first(subscription)
        await self._measure("the entry before the first hole is acknowledged", one)
        skip = asyncio.to_thread(_posted, f"{path}/subscription/s/skip/{entries // 2}")
        await self._measure(f"{entries // 2:,} are skipped over holes", skip)
        seek = asyncio.to_thread(client.seek_by_time, 1)
        await self._measure(f"seek by time over {entries:,} holes", seek)
        await asyncio.to_thread(client.close)
        expire = self._called(lambda: subscription.expire_older(PUBLISHED + entries))
        await self._measure(f"{entries:,} expire", expire)
        delete = asyncio.to_thread(_deleted, f"{path}?force=true")
        await self._measure(f"a topic of {2 * entries:,} entries is deleted", delete)

    async def _make_holes(self, subscription: Subscription) -> None:
        """Acknowledge every other entry, as a client's ACKs of 1,000 do."""
        ledger = subscription.topic.ledger
        consumer = subscription.consumers[0]
        for info in list(ledger.ledgers):
            for first in range(1, info.entries, 2 * ENTRIES_A_TURN):
                end = min(info.entries, first + 2 * ENTRIES_A_TURN)
                ids = [
                    pb.MessageIdData(ledgerId=info.ledger_id, entryId=one)
                    for one in range(first, end, 2)
                ]
                await asyncio.sleep(0)
                subscription.acknowledge(consumer, ids)
                await asyncio.sleep(0)

    async def _saved(self, subscription: Subscription) -> None:
        subscription.cursor.changed = True
        await asyncio.sleep(0)
        subscription.cursor.save()
        await asyncio.sleep(0)
        await subscription.topic.ledger.flushed()

    async def _acknowledged_first(self, subscription: Subscription) -> None:
        first = subscription.cursor.first_left
        ids = [pb.MessageIdData(ledgerId=first.ledger_id, entryId=first.entry_id)]
        subscription.acknowledge(subscription.consumers[0], ids)
        await asyncio.sleep(0)

    async def _called(self, work: Callable[[], object]) -> None:
        await asyncio.sleep(0)
        work()
        await asyncio.sleep(0)

    # -- schemas ------------------------------------------------------------------------------

    async def _schema(self) -> None:
        client = await asyncio.to_thread(ConsumingClient, self._broker.service_url)
        name = str((await self._topic("schema", 0)).name)
        for what, default in (("a new", "0"), ("another version of the", "1")):
            schema = _large_schema(default)
            offer = asyncio.to_thread(client.offer_schema, name, schema)
            await self._measure(f"{what} Avro schema of {len(schema):,} bytes", offer)
        await asyncio.to_thread(client.close)

    # -- topics -------------------------------------------------------------------------------

    async def _metrics(self) -> None:
        topics = self._sizes.topics
        for number in range(topics) if not self._try else ():
            topic = await self._topic(f"shown-{number}", 0)
            topic.subscriptions.create("s")
        url = f"{self._broker.web_service_url}/metrics/"
        page = asyncio.to_thread(_fetched, url)
        await self._measure(f"a page of the metrics of {topics:,} topics", page)

    async def _topic(self, name: str, entries: int, messages: int = 1) -> PersistentTopic:
        """Return a topic with entries of 1,000 keys, published a millisecond apart.

        Args:
            name: Its own, whose number says which try this is.
            entries: How many.
            messages: In each entry.
        """
        topic = await self._broker.messaging.loaded_topics.get(
            TopicName.parse(f"persistent://{NAMESPACE}/{name}-{self._try}"), create=True
        )
        data = [message(b"x" * 20, key=f"key-{number}") for number in range(KEYS)]
        assert isinstance(topic, PersistentTopic)
        ledger = topic.ledger
        for first in range(0, entries, ENTRIES_A_TURN):
            for number in range(first, min(entries, first + ENTRIES_A_TURN)):
                ledger.append(data[number % KEYS], MessageDigest(messages, PUBLISHED + number, 0))
            await ledger.flushed()
        return topic

    async def _left(self, client: ConsumingClient, topic: PersistentTopic, remaining: int) -> None:
        await asyncio.to_thread(client.close)
        await until(lambda: len(_only(topic).consumers) == remaining)


NAMESPACE = "public/default"
PUBLISHED = 1_700_000_000_000


def _only(topic: PersistentTopic) -> Subscription:
    (subscription,) = topic.subscriptions
    assert isinstance(subscription, Subscription)
    return subscription


class Turn(NamedTuple):
    """The longest turn, by the processor time of the loop's thread, and by the clock."""

    cpu_millis: float
    millis: float


async def longest_turn(work: Awaitable[object]) -> Turn:
    """Do some work; return the longest turn meanwhile."""
    task = asyncio.ensure_future(work)
    longest_cpu, last_cpu = 0.0, time.thread_time()
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now_cpu, now = time.thread_time(), time.perf_counter()
        longest_cpu, last_cpu = max(longest_cpu, now_cpu - last_cpu), now_cpu
        longest, last = max(longest, now - last), now
    await task
    return Turn(1_000 * longest_cpu, 1_000 * longest)


def _fetched(url: str, method: str = "GET", data: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json"}
    asked = Request(url, data=data, method=method, headers=headers)
    with urlopen(asked, timeout=60) as answer:
        body: bytes = answer.read()
    return body


def _posted(url: str) -> None:
    _fetched(url, "POST", b"")


def _deleted(url: str) -> None:
    _fetched(url, "DELETE")


def _large_schema(default: str) -> bytes:
    fields: list[dict[str, object]] = []
    size = 0
    while size < SCHEMA_BYTES - 1_000:
        one: dict[str, object] = {
            "name": f"field_{len(fields)}",
            "type": ["null", "int"],
            "default": None,
        }
        size += len(json.dumps(one)) + 2
        fields.append(one)
    definition = {"type": "record", "name": "Large", "doc": default, "fields": fields}
    return json.dumps(definition).encode()
