"""Two brokers and a proxy: each topic has one server, whichever is asked."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from broker.service import BrokerService
from broker.stores.changes import StoreError
from proto.names import NamespaceName, TopicName
from proxy.service import ProxyService
from tests.support.peers.message_peer import MessagePeer
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import broker_config, proxy_config, until

TOPICS = [f"persistent://public/default/t{index}" for index in range(40)]
Lookup = pb.CommandLookupTopicResponse


@dataclass
class Brokers:
    """Two brokers on one database, and a proxy in front of both."""

    one: BrokerService
    two: BrokerService
    proxy: ProxyService

    def owner(self, topic: str) -> BrokerService:
        """Return a topic's broker."""
        name = TopicName.parse(topic)
        (found,) = [one for one in (self.one, self.two) if one.ownership.owns(name)]
        return found

    async def through_proxy(self, topic: str) -> MessagePeer:
        """Look a topic up through the proxy and connect to its broker."""
        asking = await MessagePeer.connect(self.proxy.service_url)
        try:
            found = await asking.lookup(topic)
            assert found.response == Lookup.Connect, found
            assert found.proxy_through_service_url
            target = found.brokerServiceUrl.removeprefix("pulsar://")
            return await MessagePeer.connect(self.proxy.service_url, target)
        finally:
            asking.close()


@asynccontextmanager
async def brokers(
    url: str, stores: Mapping[str, str] | None = None, **more: str
) -> AsyncIterator[Brokers]:
    """Run the three."""
    keys = {"metadataStoreUrl": url, "advertisedAddress": "127.0.0.1", **more}
    databases = stores or {}

    def config(name: str) -> object:
        own = {"floodgateMessageStore": databases[name]} if name in databases else {}
        return broker_config({**keys, **own})

    async with BrokerService(config("one")) as one, BrokerService(config("two")) as two:
        urls = f"{one.service_url},{two.service_url.removeprefix('pulsar://')}"
        front = proxy_config(
            {
                "brokerServiceURL": urls,
                "brokerWebServiceURL": one.web_service_url,
                "brokerProxyAllowedTargetPorts": "*",
            }
        )
        async with ProxyService(front) as proxy:
            yield Brokers(one, two, proxy)


async def looked_up(broker: BrokerService, topic: str) -> pb.CommandLookupTopicResponse:
    """Look a topic up at a broker and follow redirects."""
    url, authoritative = broker.service_url, False
    while True:
        peer = await MessagePeer.connect(url)
        found = await peer.lookup(topic, authoritative=authoritative)
        peer.close()
        if found.response != Lookup.Redirect:
            return found
        url, authoritative = found.brokerServiceUrl, found.authoritative


async def test_both_brokers_name_the_same_owner_and_each_owns_topics(postgresql_url: str) -> None:
    async with brokers(postgresql_url) as parts:
        found = {topic: (await looked_up(parts.one, topic)).brokerServiceUrl for topic in TOPICS}
        for topic, url in found.items():
            assert (await looked_up(parts.two, topic)).brokerServiceUrl == url
            assert parts.owner(topic).service_url == url
        assert set(found.values()) == {parts.one.service_url, parts.two.service_url}


async def test_a_client_of_the_proxy_publishes_and_consumes_topics_of_both_brokers(
    postgresql_url: str,
) -> None:
    async with brokers(postgresql_url) as parts:
        owners = set()
        for topic in TOPICS[:12]:
            peer = await parts.through_proxy(topic)
            assert (await peer.producer(topic)).HasField("producer_success")
            assert (await peer.subscribe(topic)).HasField("success")
            await peer.flow(10)
            await peer.publish(0, topic.encode())
            assert (await peer.message()).payload == topic.encode()
            owners.add(parts.owner(topic).service_url)
            peer.close()
        assert len(owners) == 2


async def test_a_broker_refuses_a_producer_of_a_topic_it_does_not_own(postgresql_url: str) -> None:
    async with brokers(postgresql_url) as parts:
        await looked_up(parts.one, TOPICS[0])
        owner = parts.owner(TOPICS[0])
        other = parts.two if owner is parts.one else parts.one
        peer = await MessagePeer.connect(other.service_url)
        refused = await peer.producer(TOPICS[0])
        assert refused.error.error == pb.ServiceNotReady
        assert "not served by this instance" in refused.error.message
        peer.close()


async def test_a_stopping_broker_hands_its_topics_to_the_other_broker(postgresql_url: str) -> None:
    async with brokers(postgresql_url) as parts:
        for topic in TOPICS:
            await looked_up(parts.one, topic)
        moved = next(topic for topic in TOPICS if parts.owner(topic) is parts.one)
        # The proxy's first choice
        await parts.one.__aexit__(None, None, None)
        peer = await parts.through_proxy(moved)
        assert parts.owner(moved) is parts.two
        assert (await peer.producer(moved)).HasField("producer_success")
        peer.close()


async def test_a_stopping_broker_names_the_new_owner_to_its_clients(postgresql_url) -> None:
    async with brokers(postgresql_url) as parts:
        for topic in TOPICS:
            await looked_up(parts.one, topic)
        moved = next(topic for topic in TOPICS if parts.owner(topic) is parts.one)
        peer = await MessagePeer.connect(parts.one.service_url)
        await peer.producer(moved)
        await peer.subscribe(moved)
        await parts.one.__aexit__(None, None, None)
        told = [await peer.closed_by_broker() for _ in range(2)]
        peer.close()
        peer = await MessagePeer.connect(parts.two.service_url)
        urls = {told[0].close_producer.assignedBrokerServiceUrl}
        urls.add(told[1].close_consumer.assignedBrokerServiceUrl)
        assert urls == {parts.two.service_url}
        assert (await peer.producer(moved)).HasField("producer_success"), "without a lookup"
        peer.close()


async def test_unloading_a_namespace_closes_producers_and_frees_bundles(postgresql_url) -> None:
    async with brokers(postgresql_url) as parts:
        topic = TOPICS[0]
        peer = await parts.through_proxy(topic)
        await peer.producer(topic)
        await peer.publish(0, b"before")
        await peer.receipt()
        # Any broker is asked, by way of the proxy
        async with rest_client(parts.proxy) as rest:
            answer = await rest.ask("PUT", "/admin/v2/namespaces/public/default/unload")
        assert (answer.status, answer.text) == (204, "")
        assert (await peer.closed_by_broker()).type == pb.BaseCommand.CLOSE_PRODUCER
        name = TopicName.parse(topic)
        assert not any(one.ownership.owns(name) for one in (parts.one, parts.two))
        peer.close()


async def test_rest_returns_the_owner_of_a_topic_and_the_live_brokers(postgresql_url: str) -> None:
    async with brokers(postgresql_url) as parts, rest_client(parts.proxy) as rest:
        names = sorted(one.web_service_url[7:] for one in (parts.one, parts.two))
        found = set()
        assert (await rest.ask("GET", "/admin/v2/brokers")).value == names
        for topic in TOPICS:
            path = f"/lookup/v2/topic/{topic.replace('://', '/')}"
            answer = await rest.ask("GET", path)
            assert answer.status == 200, answer
            assert answer.value["brokerUrl"] == parts.owner(topic).service_url
            assert answer.value["httpUrl"] == parts.owner(topic).web_service_url
            found.add(answer.value["brokerUrl"])
        assert len(found) == 2


async def test_partitions_are_added_by_the_owner_of_the_first_partition(
    postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(postgresql_url) as parts:
        base, count = TOPICS[0], 12
        partitions = [f"{base}-partition-{index}" for index in range(count)]
        for partition in partitions:
            await looked_up(parts.one, partition)
        owner = parts.owner(partitions[0])
        other = parts.two if owner is parts.one else parts.one
        path = f"/admin/v2/{base.replace('://', '/')}"
        async with rest_client(owner) as rest, rest_client(other) as elsewhere:
            feed = other.store.changes()
            await rest.done("PUT", f"{path}/partitions", "1")
            await anext(feed)
            await rest.done("PUT", f"{path}/subscription/s", '"earliest"')
            redirected = await elsewhere.ask("POST", f"{path}/partitions", str(count))
            await rest.done("POST", f"{path}/partitions", str(count))
        assert redirected.headers["Location"].startswith(owner.web_service_url)
        given = [
            one for one in partitions if owner.messaging.loaded_topics.loaded(TopicName.parse(one))
        ]
        assert given == [one for one in partitions if parts.owner(one) is owner]
        assert 1 < len(given) < count
        for one in given:
            loaded = owner.messaging.loaded_topics.loaded(TopicName.parse(one))
            assert loaded is not None
            assert loaded.subscriptions.get("s") is not None
        lacking = sorted(set(partitions) - set(given))[0]
        assert f"{lacking} begins without the subscriptions of its topic" in caplog.text


@pytest.mark.parametrize("loaded", [True, False])
async def test_a_namespace_recreated_after_deletion_by_another_broker_has_no_old_messages(
    postgresql_url: str, loaded: bool
) -> None:
    namespace = "/admin/v2/namespaces/public/gone"
    allowed = {"forceDeleteNamespaceAllowed": "true"}
    async with brokers(postgresql_url, **allowed) as parts, rest_client(parts.one) as rest:
        await rest.done("PUT", namespace)
        topics = [topic.replace("default", "gone") for topic in TOPICS]
        for topic in topics:
            await parts.one.topics.create(TopicName.parse(topic), {})
            await looked_up(parts.one, topic)
        topic = next(one for one in topics if parts.owner(one) is parts.two)
        peer = await MessagePeer.connect(parts.two.service_url)
        await peer.producer(topic)
        await peer.publish(0, b"old")
        await peer.receipt()
        stored = parts.two.messaging.store
        if not loaded:
            peer.close()
            await parts.two.messaging.loaded_topics.unload(TopicName.parse(topic))
        await rest.done("DELETE", f"{namespace}?force=true")
        if loaded:
            assert (await peer.closed_by_broker()).type == pb.BaseCommand.CLOSE_PRODUCER
            peer.close()
        await until(lambda: not stored.holds(topic))
        await rest.done("PUT", namespace)
        found = await looked_up(parts.one, topic)
        peer = await MessagePeer.connect(found.brokerServiceUrl)
        await peer.producer(topic)
        await peer.subscribe(topic)
        await peer.flow(10)
        await peer.publish(0, b"new")
        assert (await peer.message()).payload == b"new"
        peer.close()


async def test_stored_topics_stay_with_their_stopped_broker(postgresql_url: str, tmp_path) -> None:
    stores = {name: f"sqlite://{tmp_path / name}.db" for name in ("one", "two")}
    async with brokers(postgresql_url, stores) as parts:
        for topic in TOPICS:
            await looked_up(parts.one, topic)
        kept = next(topic for topic in TOPICS if parts.owner(topic) is parts.one)
        peer = await parts.through_proxy(kept)
        await peer.producer(kept)
        await peer.publish(0, b"kept")
        assert (await peer.receipt()).type == pb.BaseCommand.SEND_RECEIPT
        peer.close()
        await parts.one.__aexit__(None, None, None)
        parts.two.ownership.away_seconds = 0.0  # no waiter
        # It is away, and its topic is not recreated
        asking = await MessagePeer.connect(parts.proxy.service_url)
        found = await asking.lookup(kept)
        assert (found.response, found.error) == (Lookup.Failed, pb.ServiceNotReady)
        assert "is not running" in found.message
        asking.close()
        # It is back, on other ports
        keys = {"metadataStoreUrl": postgresql_url, "floodgateMessageStore": stores["one"]}
        async with BrokerService(broker_config(keys)):
            peer = await parts.through_proxy(kept)
            await peer.subscribe(kept)
            await peer.flow(10)
            assert (await peer.message()).payload == b"kept"
            peer.close()


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_single_broker_serves_its_topics_again_after_an_unload(profile: str) -> None:
    async with BrokerService(broker_config({"floodgateProfile": profile})) as broker:
        peer = await MessagePeer.connect(broker.service_url)
        await peer.lookup(TOPICS[0])
        await peer.producer(TOPICS[0])
        async with rest_client(broker) as rest:
            await rest.done("PUT", "/admin/v2/namespaces/public/default/unload")
        await peer.closed_by_broker()
        unowned = (await peer.producer(TOPICS[0], 2)).HasField("error")
        assert unowned is (profile == "pulsar")
        await peer.lookup(TOPICS[0])
        assert (await peer.producer(TOPICS[0], 3)).HasField("producer_success")
        peer.close()


async def received_first(asked: BrokerService, topics: list[str], payload: bytes) -> None:
    """Read each topic from its beginning, at its broker."""
    for topic in topics:
        found = await looked_up(asked, topic)
        peer = await MessagePeer.connect(found.brokerServiceUrl)
        await peer.subscribe(topic)
        await peer.flow(10)
        assert (await peer.message()).payload == payload
        peer.close()


async def published(asked: BrokerService, topics: list[str], payload: bytes) -> None:
    """Publish to each topic, at its broker."""
    for topic in topics:
        found = await looked_up(asked, topic)
        peer = await MessagePeer.connect(found.brokerServiceUrl)
        await peer.producer(topic)
        await peer.publish(0, payload)
        await peer.receipt()
        peer.close()


@pytest.mark.parametrize("killed", [True, False])
async def test_a_namespace_recreated_before_all_brokers_know_has_only_new_messages(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    namespace = "/admin/v2/namespaces/public/gone"
    allowed = {"forceDeleteNamespaceAllowed": "true"}
    topics = [f"persistent://public/gone/t{number}" for number in range(8)]
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(brokers(postgresql_url, **allowed))
        one = await stack.enter_async_context(rest_client(parts.one))
        two = await stack.enter_async_context(rest_client(parts.two))
        await one.done("PUT", namespace)
        await published(parts.two, topics, b"old")
        tells = parts.one.ownership.namespaces_deleted

        async def made_again(namespaces: Sequence[NamespaceName]) -> None:
            if killed:
                raise StoreError("killed")
            await two.done("PUT", namespace)
            await published(parts.two, topics, b"new")
            await tells(namespaces)

        with monkeypatch.context() as patch:
            patch.setattr(parts.one.ownership, "namespaces_deleted", made_again)
            answer = await one.ask("DELETE", f"{namespace}?force=true")
        assert answer.status == (500 if killed else 204)
        if killed:
            await two.done("PUT", namespace)
            await published(parts.two, topics, b"new")
        await received_first(parts.one, topics[::-1], b"new")


async def test_a_namespace_recreated_with_other_bundles_has_only_new_messages(
    postgresql_url: str, tmp_path: Path
) -> None:
    namespace = "/admin/v2/namespaces/public/gone"
    keys = {"metadataStoreUrl": postgresql_url, "forceDeleteNamespaceAllowed": "true"}
    stored = broker_config({**keys, "floodgateMessageStore": f"sqlite://{tmp_path}/m.db"})
    topics = [f"persistent://public/gone/t{number}" for number in range(8)]
    async with BrokerService(stored) as two, rest_client(two) as rest:
        await rest.done("PUT", namespace)
        await published(two, topics, b"old")
    async with BrokerService(broker_config(keys)) as one, rest_client(one) as rest:
        await rest.done("DELETE", f"{namespace}?force=true")
        await rest.done("PUT", namespace, json.dumps({"bundles": {"numBundles": 8}}))
    async with BrokerService(stored) as two:
        await published(two, topics, b"new")
        await received_first(two, topics, b"new")


async def test_a_starting_broker_recreates_public_default_without_old_messages(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"metadataStoreUrl": postgresql_url, "forceDeleteNamespaceAllowed": "true"}
    async with brokers(postgresql_url, **keys) as parts, rest_client(parts.one) as one:

        async def killed(_: Sequence[NamespaceName]) -> None:
            raise StoreError("killed")

        await published(parts.one, TOPICS[:8], b"old")
        monkeypatch.setattr(parts.one.ownership, "namespaces_deleted", killed)
        answer = await one.ask("DELETE", "/admin/v2/namespaces/public/default?force=true")
        assert answer.status == 500
        async with BrokerService(broker_config(keys)) as third:
            await published(third, TOPICS[:8], b"new")
            await received_first(third, TOPICS[:8], b"new")
