"""What a scrape of the broker shows while messages go through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_payload_command
from server.limiter_report.routes import LIMITER_PATH
from tests.support.processes.cluster import cluster
from tests.support.processes.samples import read_samples

if TYPE_CHECKING:
    from tests.support.peers.raw_peer import RawPeer
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


async def publishing(parts: Cluster, messages: int) -> RawPeer:
    """Publish to a topic with a consumer that has room for two; return its connection."""
    peer = await parts.peer("broker")
    subscribe = pb.CommandSubscribe(
        topic=TOPIC, subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1
    )
    subscribe.request_id, subscribe.consumer_name = 1, "reader"
    producer = pb.CommandProducer(topic=TOPIC, producer_id=1, request_id=2, producer_name="writer")
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
async def test_a_scrape_shows_topic_subscription_and_clients(accept: str) -> None:
    async with cluster({}, broker=ONE_BY_ONE) as parts:
        await publishing(parts, 5)
        # When
        text = await fetched(parts, "/metrics/", accept)
    # Then
    if accept == OPENMETRICS:
        assert len(list(text_string_to_metric_families(text))) > 100  # its parser is a strict one
    found = {(one.name, *one.labels.values()): one.value for one in read_samples(text)}
    topic = ("standalone", "public/default", TOPIC)
    assert found["pulsar_in_messages_total", *topic] == 5
    assert found["pulsar_msg_backlog", *topic] == 5
    assert found["pulsar_out_messages_total", *topic, "s"] == 2
    assert found["pulsar_consumer_unacked_messages", *topic, "s", "reader", "1"] == 2
    assert ("pulsar_producer_msg_rate_in", *topic, "writer", "1") in found
    assert found["floodgate_message_store_entries", "standalone"] == 5


async def test_the_limiters_report_shows_what_stored_messages_take() -> None:
    async with cluster({}, broker={"floodgateMessageStoreMaxMB": "3"}) as parts:
        await publishing(parts, 5)
        # When
        table = await fetched(parts, f"{LIMITER_PATH}?format=table")
        figures = parts.broker.messaging.store_figures()
    # Then
    assert f"  {figures.charged_bytes:,} of 3,145,728 stored; 0 were refused" in table
