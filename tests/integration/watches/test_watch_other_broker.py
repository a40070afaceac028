"""A topic made on one broker reaches watchers on another with the same PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import proto.PulsarApi_pb2 as pb
from broker.service import BrokerService
from proto.topic_hash import topics_hash
from tests.support.peers.raw_peer import RawPeer
from tests.support.processes.cluster import broker_config, until
from tests.support.stores.topic_stores import A, changes, topic


@asynccontextmanager
async def watched_from_afar(
    url: str,
) -> AsyncIterator[tuple[BrokerService, BrokerService, RawPeer]]:
    """Two brokers on one database, and a watching peer on the second."""
    config = broker_config({"metadataStoreUrl": url})
    async with BrokerService(config) as one, BrokerService(config) as other:
        await one.store.apply(A, changes(topic("first")))
        async with await RawPeer.shaken_hands(other.service_url) as peer:
            request = pb.CommandWatchTopicList(
                request_id=1, watcher_id=1, namespace=str(A), topics_pattern=".*"
            )
            command = pb.BaseCommand.WATCH_TOPIC_LIST
            await peer.send(pb.BaseCommand(type=command, watchTopicList=request))
            answer = (await peer.command()).watchTopicListSuccess
            assert list(answer.topic) == [topic("first").decode()]
            yield one, other, peer


async def next_update(peer: RawPeer) -> pb.CommandWatchTopicUpdate:
    return (await peer.command()).watchTopicUpdate


async def test_a_topic_created_on_a_broker_reaches_watchers_elsewhere(postgresql_url: str) -> None:
    async with watched_from_afar(postgresql_url) as (one, _, peer):
        await one.store.apply(A, changes(topic("new"), removed=(topic("first"),)))
        update = await next_update(peer)
        assert list(update.new_topics) == [topic("new").decode()]
        assert list(update.deleted_topics) == [topic("first").decode()]
        assert update.topics_hash == topics_hash([topic("new").decode()])


async def test_watchers_get_updates_after_a_database_restart(postgresql_url, postgresql) -> None:
    async with watched_from_afar(postgresql_url) as (one, other, peer):
        await asyncio.to_thread(postgresql.stop)
        await until(lambda: not one.store.connected and not other.store.connected)
        await asyncio.to_thread(postgresql.start)
        await until(lambda: one.store.connected and other.store.connected)
        await one.store.apply(A, changes(topic("new")))
        assert list((await next_update(peer)).new_topics) == [topic("new").decode()]


async def test_changes_during_a_lost_connection_become_a_single_update(postgresql_url: str) -> None:
    async with watched_from_afar(postgresql_url) as (one, other, peer):
        again = asyncio.Event()
        connect = other.store._listener._connect

        async def later() -> object:
            await again.wait()
            return await connect()

        other.store._listener._connect = later
        other.store._listener._connection.terminate()
        await until(lambda: not other.store.connected)
        for name in ("a", "b", "c"):
            await one.store.apply(A, changes(topic(name)))
        again.set()
        await until(lambda: other.store.connected)
        names = [topic(name).decode() for name in ("a", "b", "c")]
        assert list((await next_update(peer)).new_topics) == names
