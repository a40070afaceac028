"""Samples of the broker's scrape during message flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_payload_command
from proto.names import TopicName
from server.limiter_report.routes import LIMITER_PATH
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster
from tests.support.processes.samples import read_samples

if TYPE_CHECKING:
    from collections.abc import Generator

    from server.metrics.exposition import Families
    from tests.support.peers.raw_peer import RawPeer
    from tests.support.peers.rest_client import RestClient
    from tests.support.processes.cluster import Cluster

TOPIC = "persistent://public/default/orders"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
ONE_BY_ONE = {
    "exposeConsumerLevelMetricsInPrometheus": "true",
    "exposeProducerLevelMetricsInPrometheus": "true",
}


async def fetched(parts: Cluster, path: str, accept: str = "text/plain") -> str:
    url, headers = f"{parts.broker.web_service_url}{path}", {"Accept": accept}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert answer.status == 200
        return await answer.text()


async def publishing(
    parts: Cluster, messages: int, topic: str = TOPIC, *, durable: bool = True
) -> RawPeer:
    """Publish to a topic with a consumer of two permits; return its connection."""
    peer = await parts.peer("broker")
    subscribe = pb.CommandSubscribe(
        topic=topic, subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1
    )
    subscribe.durable = durable
    subscribe.request_id, subscribe.consumer_name = 1, "reader"
    producer = pb.CommandProducer(topic=topic, producer_id=1, request_id=2, producer_name="writer")
    flow = pb.CommandFlow(consumer_id=1, messagePermits=2)
    await peer.send(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe))
    assert (await peer.answer()).type == pb.BaseCommand.SUCCESS
    await peer.send(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))
    await peer.send(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))
    assert (await peer.answer()).type == pb.BaseCommand.PRODUCER_SUCCESS
    for number in range(messages):
        metadata = pb.MessageMetadata(producer_name="writer", sequence_id=number, publish_time=1)
        sent = pb.CommandSend(producer_id=1, sequence_id=number)
        command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=sent)
        await peer.send_bytes(encode_payload_command(command, metadata.SerializeToString(), b"m"))
    receipts = 0
    while receipts < messages:
        receipts += (await peer.answer()).type == pb.BaseCommand.SEND_RECEIPT
    return peer


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
async def test_a_scrape_shows_a_topic_its_subscription_consumer_and_producer(accept: str) -> None:
    async with cluster({}, broker=ONE_BY_ONE) as parts:
        await publishing(parts, 5)
        text = await fetched(parts, "/metrics/", accept)
    if accept == OPENMETRICS:
        assert len(list(text_string_to_metric_families(text))) > 100  # its parser is strict
    found = {(one.name, *one.labels.values()): one.value for one in read_samples(text)}
    topic = ("standalone", "public/default", TOPIC)
    assert found["pulsar_in_messages_total", *topic] == 5
    assert found["pulsar_msg_backlog", *topic] == 5
    assert found["pulsar_out_messages_total", *topic, "s"] == 2
    assert found["pulsar_consumer_unacked_messages", *topic, "s", "reader", "1"] == 2
    assert ("pulsar_producer_msg_rate_in", *topic, "writer", "1") in found
    assert found["floodgate_message_store_entries", "standalone"] == 5


async def test_the_limiter_table_shows_the_bytes_of_stored_messages() -> None:
    async with cluster({}, broker={"floodgateMessageStoreMaxMB": "3"}) as parts:
        await publishing(parts, 5)
        table = await fetched(parts, f"{LIMITER_PATH}?format=table")
        figures = parts.broker.messaging.store.figures()
    assert f"  {figures.charged_bytes:,} of 3,145,728 stored; 0 were refused" in table


async def fallen(parts: Cluster, before: dict[tuple[str, ...], float]) -> list[tuple[str, ...]]:
    now = await counters(parts)
    return [name for name, value in before.items() if now.get(name, 0) < value]


async def counters(parts: Cluster) -> dict[tuple[str, ...], float]:
    """Return the message counters of the broker and its namespaces."""
    return {
        (one.name, *one.labels.values()): one.value
        for one in read_samples(await fetched(parts, "/metrics/"))
        if one.name.startswith("pulsar_") and one.name.endswith(("_total", "_latency_count"))
    }


async def topic_counters(rest: RestClient, path: str) -> dict[str, int]:
    stats = (await rest.ask("GET", f"{path}/stats")).value
    return {name: value for name, value in stats.items() if name.endswith("Counter")}


CLOSE = pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER)
CLOSE.close_consumer.consumer_id, CLOSE.close_consumer.request_id = 1, 9
UNSUBSCRIBE = pb.BaseCommand(type=pb.BaseCommand.UNSUBSCRIBE)
UNSUBSCRIBE.unsubscribe.consumer_id, UNSUBSCRIBE.unsubscribe.request_id = 1, 9
WAYS = {
    "unsubscribed": UNSUBSCRIBE,
    "reader closed": CLOSE,
    "deleted by REST": ("DELETE", "/subscription/s?force=true"),
    "topic unloaded": ("PUT", "/unload"),
    "topic deleted": ("DELETE", "?force=true"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", [TOPIC, TOPIC.replace("persistent", "non-persistent")])
async def test_no_counter_decreases_with_a_deletion_or_unload(topic: str, way: str) -> None:
    by = WAYS[way]
    settings = {"exposeTopicLevelMetricsInPrometheus": "false"}
    async with cluster({}, broker=settings) as parts, rest_client(parts.broker) as rest:
        await parts.broker.messaging.loaded_topics.get(TopicName.parse(f"{TOPIC}-2"))
        peer = await publishing(parts, 5, topic, durable=way != "reader closed")
        path = f"/admin/v2/{topic.replace('://', '/')}"
        before, of_topic = await counters(parts), await topic_counters(rest, path)
        if isinstance(by, tuple):
            await rest.done(by[0], f"{path}{by[1]}")
        else:
            await peer.send(by)
            while (await peer.answer()).type != pb.BaseCommand.SUCCESS:
                pass
        assert before["pulsar_out_messages_total", "standalone", "public/default"] == 2
        assert not await fallen(parts, before)
        if not way.startswith("topic"):
            assert await topic_counters(rest, path) == of_topic


async def test_a_topic_unloaded_during_a_scrape_is_counted_once() -> None:
    settings = {"exposeTopicLevelMetricsInPrometheus": "false"}
    async with cluster({}, broker=settings) as parts:
        await publishing(parts, 5)
        messaging = parts.broker.messaging
        scrape = messaging.metrics.gather()
        next(scrape)  # The scrape includes the subscription.
        await messaging.loaded_topics.unload(TopicName.parse(TOPIC))
        families = list(ended(scrape))
        [lines] = [one.lines for one in families if one.name == "pulsar_broker_out_bytes_total"]
        sent = (await counters(parts))["pulsar_broker_out_bytes_total", "standalone", "false"]
        assert float(lines[0].split()[-1]) == sent > 0


def ended(scrape: Generator[None, None, Families]) -> Families:
    while True:
        try:
            next(scrape)
        except StopIteration as end:
            found: Families = end.value
            return found
