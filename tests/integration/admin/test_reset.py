"""A reset beside reconnecting clients, and beside other brokers of the same store."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from broker.messages.errors import MessageStoreError
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from broker.stores.store import NamespaceSnapshot
from client import Client, InitialPosition
from proto.names import NamespaceName, TopicName
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import broker_config, cluster

NAMESPACE = NamespaceName("public", "default")
RESET = "/admin/v2/floodgate/reset"
ON = {"floodgateFaultsEnabled": "true"}
TOPICS = [f"persistent://public/default/reset-{index}" for index in range(8)]


async def test_a_topic_created_during_a_reset_is_deleted_as_well() -> None:
    async with cluster(broker=ON) as parts, rest_client(parts.broker) as rest:
        store = parts.broker.store
        delete = store.delete_all

        async def delete_too_late(
            namespaces: Sequence[NamespaceName],
        ) -> Mapping[NamespaceName, NamespaceSnapshot]:
            await store.apply(NAMESPACE, TopicChanges([TOPICS[0].encode()]))
            return await delete(namespaces)

        store.delete_all = delete_too_late
        assert (await rest.ask("POST", RESET)).status == 204
        left = await store.snapshot(NAMESPACE)
        assert left is not None
        assert left.empty


async def test_a_reset_is_answered_409_if_a_tenant_is_used_again_meanwhile() -> None:
    async with cluster(broker=ON) as parts, rest_client(parts.broker) as rest:
        store = parts.broker.store
        delete = store.delete_tenant

        async def delete_too_late(name: str) -> bool:
            await store.create_namespace(NamespaceName(name, "again"))
            return await delete(name)

        store.delete_tenant = delete_too_late
        answer = await rest.ask("POST", RESET)
        assert (answer.status, "then reset again" in answer.text) == (409, True)
        store.delete_tenant = delete
        assert (await rest.ask("POST", RESET)).status == 204


async def test_a_reset_that_failed_to_delete_messages_is_completed_by_the_next_reset() -> None:
    async with cluster(broker=ON) as parts, rest_client(parts.broker) as rest:
        store = parts.broker.messaging.store
        names = [f"persistent://public/n{number}/t" for number in range(3)]
        for number, name in enumerate(names):
            await rest.ask("PUT", f"/admin/v2/namespaces/public/n{number}")
            await rest.ask("PUT", f"/admin/v2/persistent/public/n{number}/t")
            await store.open_ledger(name)
        delete = store.delete_ledger

        async def refused(name: str) -> None:
            if name == names[1]:
                raise MessageStoreError("no room for a moment")
            await delete(name)

        store.delete_ledger = refused
        answer = await rest.ask("POST", RESET)
        assert (answer.status, answer.reason) == (500, "no room for a moment")
        assert (await rest.ask("GET", "/admin/v2/namespaces/public/n1")).status == 200
        store.delete_ledger = delete
        assert (await rest.ask("POST", RESET)).status == 204
        assert not store.names()


async def test_a_reset_clears_topics_of_all_brokers_of_a_store(postgresql_url: str) -> None:
    # Topics of both brokers, with messages
    config = broker_config({"metadataStoreUrl": postgresql_url, **ON})
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(BrokerService(config))
        two = await stack.enter_async_context(BrokerService(config))
        client = await stack.enter_async_context(Client(one.service_url))
        for topic in TOPICS:
            producer = await client.create_producer(topic)
            await producer.send(b"before")
            await producer.close()
        owners = {one.ownership.owns(TopicName.parse(topic)) for topic in TOPICS}
        assert owners == {True, False}
        rest = await stack.enter_async_context(rest_client(one))
        answer = await rest.ask("POST", RESET)
        assert answer.status == 204, answer
        assert not [*one.messaging.loaded_topics, *two.messaging.loaded_topics]
        for topic in TOPICS:
            consumer = await client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
            await (await client.create_producer(topic)).send(b"after")
            assert (await consumer.receive(5_000)).data() == b"after"


async def test_a_reset_removes_interdependent_dynamic_values_together() -> None:
    # This low mark would exceed the file's high mark; and a key of another version
    values = {
        "pulsarChannelWriteBufferHighWaterMark": "1048576",
        "pulsarChannelWriteBufferLowWaterMark": "524288",
    }
    async with cluster(broker=ON) as parts, rest_client(parts.broker) as rest:
        begun = parts.broker.dynamic.config
        for key, value in values.items():
            path = f"/admin/v2/brokers/configuration/{key}/{value}"
            assert (await rest.ask("POST", path)).status == 200
        await parts.broker.store.set_configuration("keyOfAnotherVersion", "1")
        answer = await rest.ask("POST", RESET)
        assert answer.status == 204
        assert await parts.broker.store.configuration() == {}
        assert parts.broker.dynamic.config == begun


async def test_a_policy_set_during_a_namespace_deletion_is_deleted_with_it() -> None:
    keys = {"forceDeleteNamespaceAllowed": "true"}
    async with cluster(broker=keys) as parts, rest_client(parts.broker) as rest:
        path, store = "/admin/v2/namespaces/public/gone", parts.broker.store
        await rest.done("PUT", path)
        delete_all = store.delete_all

        async def and_set(namespaces: Sequence[NamespaceName]) -> object:
            await rest.done("POST", f"{path}/messageTTL", "7")
            return await delete_all(namespaces)

        store.delete_all = and_set
        await rest.done("DELETE", f"{path}?force=true")
        await rest.done("PUT", path)
        assert (await rest.ask("GET", f"{path}/messageTTL")).text == ""
