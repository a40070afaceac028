"""The event loop's longest turn for each operation on large topics and subscriptions.

A broker runs in this process, on the memory store and on the log. Its clients are in another
thread, whose time is excluded: the figure is the processor time of the loop's thread from turn to
turn, including dispatch, saving of cursors and garbage collections.

On a shared machine the same work takes up to three times the processor time, because caches and
cores are shared. A group with a case above the bound is measured again, on new topics, three times
at most, and the least of each case counts. The longest turn by the clock is reported and not
judged: it includes the system's delays, as of a slow disk.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import broker.schemas.avro.judge as judge
import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.messages.subscriptions.subscription import Subscription
from broker.service import BrokerService
from server.loop import run
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL
from tests.proof.sizes.consuming_client import ConsumingClient
from tests.proof.sizes.dispatch import acknowledging, delaying, giving_back, sharing_out
from tests.proof.sizes.dispatch.quiet_consumer import called
from tests.proof.sizes.measured_turns import (
    ENTRIES_A_TURN,
    NAMESPACE,
    PUBLISHED,
    MeasuredTurns,
    Sizes,
    deleted,
    fetched,
    only_subscription,
    posted,
)
from tests.proof.sizes.turns_with_consumers import (
    failover_leaves,
    large_messages,
    seeks,
    stats_and_unload,
)

CHECK_SECONDS = 60.0
"""A schema is checked in another process, which may be slow here."""
ENTRIES, QUICK_ENTRIES = 1_000_000, 40_000
CONSUMERS, QUICK_CONSUMERS = 1_000, 50
UNACKED, QUICK_UNACKED = 50_000, 4_000
SCHEMA_BYTES = 1_000_000
TOPICS, QUICK_TOPICS = 10_000, 300
"""Topics with separate samples, each with a subscription."""
LONG_ACK_IDS, SHORT_ACK_IDS = 20_000, 1_000
STORES = ("memory", "sqlite")
Key_Shared, Shared = pb.CommandSubscribe.Key_Shared, pb.CommandSubscribe.Shared


def prove(options: ProofOptions) -> ProofResult:
    """Measure every case on both stores."""
    sizes = (
        Sizes(QUICK_ENTRIES, QUICK_CONSUMERS, QUICK_UNACKED, QUICK_TOPICS)
        if options.quick
        else Sizes(ENTRIES, CONSUMERS, UNACKED, TOPICS)
    )
    result = ProofResult()
    judge.SECONDS = CHECK_SECONDS
    database = options.out / "messages.db"
    for store in STORES:
        keys = {"floodgateMessageStore": store if store == "memory" else f"sqlite://{database}"}
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


class Turns(MeasuredTurns):
    """The cases on a store."""

    async def all_cases(self) -> None:
        """Measure all cases, some repeatedly; judge the least."""
        groups = (
            partial(stats_and_unload, self),
            partial(failover_leaves, self),
            partial(seeks, self),
            partial(large_messages, self),
            self._consumers_join,
            self._redelivery,
            self._acknowledgement,
            self._cursors,
            self._schema,
            self._metrics,
            *(partial(group, self) for group in self._of_dispatch),
        )
        for group in groups:
            await self.repeat(group)
        self.judge()

    @property
    def _of_dispatch(self) -> Iterable[Callable[[MeasuredTurns], Awaitable[None]]]:
        """The groups of dispatch, on a single store: they are the same on all."""
        modules = (acknowledging, delaying, giving_back, sharing_out)
        return (group for one in modules for group in one.GROUPS if self.store == STORES[0])

    # -- consumers ----------------------------------------------------------------------------

    async def _consumers_join(self) -> None:
        topic = await self.topic("joined", self.sizes.unacked)
        count = self.sizes.consumers
        client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        join = asyncio.to_thread(client.subscribe, str(topic.name), Key_Shared, count)
        await self.measure(f"{count:,} Key_Shared consumers join", join)
        each = self.sizes.unacked // count
        flow = asyncio.to_thread(client.receive, [each] * count, self.sizes.unacked // 2)
        await self.measure(f"{count:,} Key_Shared consumers have room", flow)
        other = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        join = asyncio.to_thread(other.subscribe, str(topic.name), Key_Shared, count)
        await self.measure(f"{count:,} join those that have messages", join)
        leave = self.left(client, topic, count)
        await self.measure(f"{count:,} leave with what they have", leave)
        await asyncio.to_thread(other.close)

    async def _redelivery(self) -> None:
        count = self.sizes.unacked
        for kind in (Shared, Key_Shared):
            kind_name = pb.CommandSubscribe.SubType.Name(kind)
            topic = await self.topic(f"redelivered-{kind_name}", count)
            client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
            await asyncio.to_thread(client.subscribe, str(topic.name), kind, 1)
            receive = asyncio.to_thread(client.receive, [count], count)
            await self.measure(f"{count:,} are delivered, {kind_name}", receive)
            again = asyncio.to_thread(client.redeliver_all, count)
            await self.measure(f"{count:,} are redelivered, {kind_name}", again)
            await asyncio.to_thread(client.close)

    async def _acknowledgement(self) -> None:
        count = self.sizes.unacked
        topic = await self.topic("acknowledged", count)
        client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        await asyncio.to_thread(client.receive, [count], count)
        ids = [(one.ledger_id, at) for one in topic.ledger.ledgers for at in range(one.entries)]
        again = asyncio.to_thread(client.redeliver, ids)
        await self.measure(f"{count:,} ids are given back", again)
        ack = asyncio.to_thread(client.acknowledge, ids, LONG_ACK_IDS)
        await self.measure(f"{count:,} ids in ACKs of {LONG_ACK_IDS:,}, all at once", ack)
        await asyncio.to_thread(client.close)
        await self._batches()

    async def _batches(self) -> None:
        count = self.sizes.unacked
        topic = await self.topic("batches", count, messages=10)
        client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        await asyncio.to_thread(client.receive, [10 * count], count)
        ids = [(one.ledger_id, at) for one in topic.ledger.ledgers for at in range(one.entries)]
        ack = asyncio.to_thread(client.acknowledge, ids, SHORT_ACK_IDS, (0b1111111110,))
        await self.measure(f"{count:,} batches are acknowledged in part", ack)
        await self.measure("a cursor with them is saved", self._saved(only_subscription(topic)))
        await asyncio.to_thread(client.close)

    # -- cursors ------------------------------------------------------------------------------

    async def _cursors(self) -> None:
        entries = self.sizes.entries
        topic = await self.topic("large", 2 * entries)
        client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Shared, 1)
        subscription = only_subscription(topic)
        await self.measure(f"{entries:,} holes are made", self._make_holes(subscription))
        await self.measure("a cursor with holes is saved", self._saved(subscription))
        web = self.broker.web_service_url
        path = f"{web}/admin/v2/persistent/{NAMESPACE}/large-{self.number}"
        for what in ("internalStats", "stats"):
            await self.measure(f"{what} of them", asyncio.to_thread(fetched, f"{path}/{what}"))
        one = self._acknowledged_first(subscription)
        await self.measure("the entry before the first hole is acknowledged", one)
        skip = asyncio.to_thread(posted, f"{path}/subscription/s/skip/{entries // 2}")
        await self.measure(f"{entries // 2:,} are skipped over holes", skip)
        seek = asyncio.to_thread(client.seek_by_time, 1)
        await self.measure(f"seek by time over {entries:,} holes", seek)
        await asyncio.to_thread(client.close)
        expire = called(lambda: subscription.expire_older(PUBLISHED + entries))
        await self.measure(f"{entries:,} expire", expire)
        delete = asyncio.to_thread(deleted, f"{path}?force=true")
        await self.measure(f"a topic of {2 * entries:,} entries is deleted", delete)

    async def _make_holes(self, subscription: Subscription) -> None:
        """Acknowledge every second entry, as a client's ACKs of 1,000 do."""
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

    # -- schemas ------------------------------------------------------------------------------

    async def _schema(self) -> None:
        client = await asyncio.to_thread(ConsumingClient, self.broker.service_url)
        name = str((await self.topic("schema", 0)).name)
        for what, default in (("a new", "0"), ("another version of the", "1")):
            schema = _large_schema(default)
            offer = asyncio.to_thread(client.offer_schema, name, schema)
            await self.measure(f"{what} Avro schema of {len(schema):,} bytes", offer)
        await asyncio.to_thread(client.close)

    # -- topics -------------------------------------------------------------------------------

    async def _metrics(self) -> None:
        topics = self.sizes.topics
        for number in range(topics) if not self.number else ():
            topic = await self.topic(f"shown-{number}", 0)
            topic.subscriptions.create("s")
        url = f"{self.broker.web_service_url}/metrics/"
        page = asyncio.to_thread(fetched, url)
        await self.measure(f"a page of the metrics of {topics:,} topics", page)


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
