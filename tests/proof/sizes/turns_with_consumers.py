"""Cases with many consumers: statistics, unload, close by SEEK, large messages."""

import asyncio
import json

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import MessageDigest
from tests.proof.sizes.consuming_client import ConsumingClient
from tests.proof.sizes.measured_turns import (
    NAMESPACE,
    PUBLISHED,
    MeasuredTurns,
    deleted,
    fetched,
)
from tests.support.processes.cluster import until
from tests.support.subscriptions.messages import message

Exclusive, Failover = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover
Key_Shared = pb.CommandSubscribe.Key_Shared
CONNECTIONS = 50
LARGE_BYTES = 5 * 1024 * 1024 - 1_000
RECEIVERS = 100


async def stats_and_unload(turns: MeasuredTurns) -> None:
    """Show, unload and delete topics with many consumers that hold messages."""
    count = turns.sizes.consumers
    for what in ("unload", "delete"):
        topic = await turns.topic(what, 10 * count)
        client = await asyncio.to_thread(ConsumingClient, turns.broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Key_Shared, count)
        await asyncio.to_thread(client.receive, [10] * count, 5 * count)
        path = f"{turns.broker.web_service_url}/admin/v2/persistent/{NAMESPACE}/{what}"
        path = f"{path}-{turns.number}"
        if what == "unload":
            stats = asyncio.to_thread(fetched, f"{path}/stats")
            await turns.measure(f"stats of {count:,} Key_Shared consumers", stats)
            unload = asyncio.to_thread(fetched, f"{path}/unload", "PUT")
            await turns.measure(f"unload with {count:,} Key_Shared consumers", unload)
        else:
            delete = asyncio.to_thread(deleted, f"{path}?force=true")
            await turns.measure(f"forced delete with {count:,} Key_Shared consumers", delete)
        await asyncio.to_thread(client.close)


async def failover_leaves(turns: MeasuredTurns) -> None:
    """Close a connection with all consumers of a partition but one."""
    count, name = turns.sizes.consumers, f"failover-{turns.number}"
    partitions = f"{turns.broker.web_service_url}/admin/v2/persistent/{NAMESPACE}/{name}/partitions"
    await asyncio.to_thread(fetched, partitions, "PUT", json.dumps(3).encode())
    topic = await turns.topic(name, 0, partition=1)
    first = await asyncio.to_thread(ConsumingClient, turns.broker.service_url)
    await asyncio.to_thread(first.subscribe, str(topic.name), Failover, 1)
    client = await asyncio.to_thread(ConsumingClient, turns.broker.service_url)
    join = asyncio.to_thread(client.subscribe, str(topic.name), Failover, count)
    await turns.measure(f"{count:,} Failover consumers of a partition join", join)
    leave = turns.left(client, topic, 1)
    await turns.measure(f"{count:,} Failover consumers of a partition leave", leave)
    await asyncio.to_thread(first.close)


async def seeks(turns: MeasuredTurns) -> None:
    """Seek to a time by many consumers simultaneously, each with a separate subscription."""
    count = turns.sizes.consumers
    for connections in (1, CONNECTIONS):
        topic = await turns.topic(f"seek-{connections}", 10 * count)
        each = count // connections
        clients = [
            await asyncio.to_thread(ConsumingClient, turns.broker.service_url)
            for _ in range(connections)
        ]
        for number, client in enumerate(clients):
            own = [f"s-{number}-{one}" for one in range(each)]
            await asyncio.to_thread(client.subscribe, str(topic.name), Exclusive, each, own)
        work = [asyncio.to_thread(client.seek_all, each, PUBLISHED + count) for client in clients]
        await turns.measure(f"{each:,} SEEKs on each of {connections}", asyncio.gather(*work))
        for client in clients:
            await asyncio.to_thread(client.close)


async def large_messages(turns: MeasuredTurns) -> None:
    """Send a message of 5 MiB to many subscriptions of a topic."""
    topic = await turns.topic("five-mebibytes", 0)
    clients = []
    for number in range(RECEIVERS):
        client = await asyncio.to_thread(ConsumingClient, turns.broker.service_url)
        await asyncio.to_thread(client.subscribe, str(topic.name), Exclusive, 1, [f"s-{number}"])
        await asyncio.to_thread(client.flow, 1)
        clients.append(client)

    async def sent() -> None:
        data = message(b"x" * LARGE_BYTES, key="k")
        topic.ledger.append(data, MessageDigest(1, PUBLISHED, 0))
        await asyncio.gather(*(asyncio.to_thread(client.receive, (), 1) for client in clients))

    await turns.measure(f"a message of 5 MiB goes to {RECEIVERS}", sent())
    for client in clients:
        await asyncio.to_thread(client.close)
    await until(lambda: not topic.subscriptions.consumer_count)
