"""Topics moved to another broker under their clients: by a drain with TLS, and by a fault."""

import json
from contextlib import AsyncExitStack

import proto.PulsarApi_pb2 as pb
from broker.service import BrokerService
from client import Client
from proto.names import TopicName
from tests.support.certificates import PemFiles
from tests.support.peers.message_peer import MessagePeer
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import broker_config

FAULTS = "/admin/v2/floodgate/faults"
TOPICS = [f"persistent://public/default/moved-{index}" for index in range(8)]


async def two_brokers(
    stack: AsyncExitStack, url: str, **keys: str
) -> tuple[BrokerService, BrokerService]:
    config = broker_config({"metadataStoreUrl": url, "advertisedAddress": "127.0.0.1", **keys})
    one, two = BrokerService(config), BrokerService(config)
    return await stack.enter_async_context(one), await stack.enter_async_context(two)


async def owned_by(one: BrokerService) -> str:
    """Look the topics up; return a topic owned by a broker."""
    peer = await MessagePeer.connect(one.service_url)
    for topic in TOPICS:
        await peer.lookup(topic, authoritative=True)
    peer.close()
    return next(topic for topic in TOPICS if one.ownership.owns(TopicName.parse(topic)))


async def test_a_tls_client_follows_a_topic_to_a_tls_url(postgresql_url: str, tmp_path) -> None:
    pem = PemFiles(tmp_path)
    async with AsyncExitStack() as stack:
        tls = pem.keys(brokerServicePortTls="0")
        one, two = await two_brokers(stack, postgresql_url, **tls)
        topic = await owned_by(one)
        peer = await MessagePeer.connect(one.service_url)
        await peer.producer(topic)
        client = Client(one.urls.service_tls, tls_trust_certs_file_path=pem.trust)
        await stack.enter_async_context(client)
        producer = await client.create_producer(topic)
        await producer.send(b"before")
        await one.__aexit__(None, None, None)
        told = (await peer.closed_by_broker()).close_producer
        peer.close()
        # The client follows, without any other address
        assert told.assignedBrokerServiceUrl == two.service_url
        assert told.assignedBrokerServiceUrlTls == two.urls.service_tls
        await producer.send(b"after")
        (at_two,) = two.messaging.loaded_topics
        assert at_two.full_name == topic


async def test_a_move_topic_fault_moves_a_topic_to_the_named_broker(postgresql_url: str) -> None:
    async with AsyncExitStack() as stack:
        one, two = await two_brokers(stack, postgresql_url, floodgateFaultsEnabled="true")
        topic = await owned_by(one)
        do = {"action": "moveTopic", "to": two.service_url}
        async with rest_client(one) as rest:
            answer = await rest.ask("POST", FAULTS, json.dumps({"on": ["SEND"], "do": do}))
        assert answer.status == 200, answer
        peer = await MessagePeer.connect(one.service_url)
        await peer.producer(topic)
        await peer.publish(0, b"x")
        assert (await peer.closed_by_broker()).type == pb.BaseCommand.CLOSE_PRODUCER
        found = await peer.lookup(topic)
        assert found.brokerServiceUrl == two.service_url
        assert two.ownership.owns(TopicName.parse(topic))
        peer.close()


async def test_a_topic_with_an_invalid_target_stays(postgresql_url: str, tmp_path, caplog) -> None:
    # A dead address, and then messages in a database
    async with AsyncExitStack() as stack:
        config = {"metadataStoreUrl": postgresql_url, "floodgateFaultsEnabled": "true"}
        store = {"floodgateMessageStore": f"sqlite://{tmp_path}/one.db"}
        one = await stack.enter_async_context(BrokerService(broker_config({**config, **store})))
        topic = await owned_by(one)
        two = await stack.enter_async_context(BrokerService(broker_config(config)))
        async with rest_client(one) as rest:
            for to in ("pulsar://nowhere:1", two.service_url):
                fault = {"when": {"times": 1}, "do": {"action": "moveTopic", "to": to}}
                await rest.ask("POST", FAULTS, json.dumps({"on": ["SEND"], **fault}))
        peer = await MessagePeer.connect(one.service_url)
        await peer.producer(topic)
        for number in range(2):
            await peer.publish(number, b"x")
            await peer.receipt()
        (cnx,) = [cnx for cnx in one.connections if cnx.producers]
        await cnx.requests.tasks.finished()
        assert one.ownership.owns(TopicName.parse(topic))
        assert "no live broker has the address pulsar://nowhere:1; live brokers: " in caplog.text
        assert "are in the database of" in caplog.text
        peer.close()


async def test_a_single_broker_refuses_a_move_topic_fault_with_a_target() -> None:
    config = broker_config({"floodgateFaultsEnabled": "true"})
    async with BrokerService(config) as broker, rest_client(broker) as rest:
        do = {"action": "moveTopic", "to": "pulsar://b:1"}
        answer = await rest.ask("POST", FAULTS, json.dumps({"do": do}))
        assert answer.status == 412
        assert "alone" in answer.text
