"""Requests about many partitions, interleaved with unloads and deletions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from types import SimpleNamespace

import pytest

from broker.messages.loading.loaded_topics import LoadedTopics
from broker.messages.metadata import MessageDigest
from broker.messages.stores.memory import MemoryManagedLedger
from broker.messages.topic import PersistentTopic
from proto.names import TopicName
from server.tasks import cooperative
from tests.support.messages.deletion import deletion_of
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import cluster

TOPIC = "/admin/v2/persistent/public/default/orders"
NAMESPACE = "/admin/v2/namespaces/public/default"
PARTITIONS = 3


@asynccontextmanager
async def partitions(kind: str = "memory") -> AsyncIterator[tuple[RestClient, LoadedTopics]]:
    """Serve three partitions with a message each and subscription s at the beginning."""
    async with cluster(profile="floodgate") as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPIC}/partitions", str(PARTITIONS))
        await rest.done("PUT", f"{TOPIC}/subscription/s")
        loaded = parts.broker.messaging.loaded_topics
        for topic in loaded:
            assert isinstance(topic, PersistentTopic)
            topic.ledger.append(b"one", MessageDigest(1, 1, 0))
        yield rest, loaded


def between_turns(monkeypatch: pytest.MonkeyPatch, others: Callable[[], Awaitable[None]]) -> None:
    """Give every item of work its own turn, with interfering actions in between."""

    async def sleep(_: float) -> None:
        await others()

    monkeypatch.setattr(cooperative, "perf_counter", count().__next__)
    parts = {"Lock": asyncio.Lock, "get_running_loop": asyncio.get_running_loop}
    monkeypatch.setattr(cooperative, "asyncio", SimpleNamespace(sleep=sleep, **parts))


async def backlogs(loaded: LoadedTopics) -> list[int]:
    """Return the backlog of s in each partition; -1 without s."""
    found = []
    for index in range(PARTITIONS):
        name = TopicName.parse(f"persistent://public/default/orders-partition-{index}")
        topic = await loaded.get(name)
        assert isinstance(topic, PersistentTopic)
        state = topic.ledger.cursors.get("s")
        found.append(-1 if state is None else topic.subscriptions.get("s").cursor.backlog)
    return found


async def unload_all(loaded: LoadedTopics) -> None:
    for topic in loaded:
        await loaded.unload(topic.name)


CALLS = [
    ("PUT", f"{TOPIC}/subscription/new", 1),
    ("DELETE", f"{TOPIC}/subscription/s", -1),
    ("PUT", f"{TOPIC}/subscription/s/properties", 1),
    ("POST", f"{TOPIC}/subscription/s/skip_all", 0),
    ("POST", f"{TOPIC}/subscription/s/expireMessages/5", 0),
    ("POST", f"{TOPIC}/all_subscription/expireMessages/5", 0),
    ("POST", f"{TOPIC}/subscription/s/resetcursor/5", 0),
    ("DELETE", f"{TOPIC}/truncate", 0),
    ("POST", f"{TOPIC}/trim", 1),
    ("PUT", f"{TOPIC}/unload", 1),
    ("POST", f"{TOPIC}/terminate/partitions", 1),
    ("GET", f"{TOPIC}/partitioned-stats", 1),
    ("POST", f"{NAMESPACE}/clearBacklog", 0),
    ("POST", f"{NAMESPACE}/clearBacklog/s", 0),
    ("POST", f"{NAMESPACE}/unsubscribe/s", -1),
]


@pytest.mark.parametrize(("method", "path", "left"), CALLS)
async def test_a_request_affects_every_partition_despite_concurrent_unloads(
    method: str, path: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with partitions() as (rest, loaded):
        between_turns(monkeypatch, lambda: unload_all(loaded))
        await rest.done(method, path, "{}" if path.endswith("properties") else None)
        monkeypatch.undo()
        await unload_all(loaded)
        assert await backlogs(loaded) == [left] * PARTITIONS


@pytest.mark.parametrize(("method", "path", "_"), CALLS)
async def test_a_request_during_deletions_succeeds_or_is_404(method, path, _, monkeypatch) -> None:
    async with partitions() as (rest, loaded):

        async def delete_one() -> None:
            topic = next(iter(loaded), None)
            if topic is not None:
                await deletion_of(loaded).delete(topic.name, force=True)

        between_turns(monkeypatch, delete_one)
        answer = await rest.ask(method, path, "{}" if path.endswith("properties") else None)
        assert answer.status in (200, 204, 404), answer


async def test_missing_partitions_are_created_beside_clients_creating_some(monkeypatch) -> None:
    async with partitions() as (rest, loaded):
        for index in range(PARTITIONS):
            await rest.done("DELETE", f"{TOPIC}-partition-{index}")
        last = TopicName.parse(f"persistent://public/default/orders-partition-{PARTITIONS - 1}")

        async def use_last() -> None:
            await loaded.get(last)

        between_turns(monkeypatch, use_last)
        await rest.done("POST", f"{TOPIC}/createMissedPartitions")
        assert await backlogs(loaded) == [-1] * PARTITIONS


async def test_a_subscription_created_concurrently_by_a_client_is_kept(monkeypatch) -> None:
    async with partitions() as (rest, loaded):
        made = {}

        def topics_with_new() -> list[object]:
            return [topic for topic in loaded if topic.subscriptions.get("new") is not None]

        async def subscribe() -> None:
            topics = list(loaded) if topics_with_new() else []
            for topic in topics:
                if topic.subscriptions.get("new") is None:
                    made[topic] = topic.subscriptions.create("new")

        between_turns(monkeypatch, subscribe)
        await rest.done("PUT", f"{TOPIC}/subscription/new")
        assert len(made) == PARTITIONS - 1
        assert {topic: topic.subscriptions.get("new") for topic in made} == made


async def test_a_topic_is_deleted_though_a_partition_was_deleted_concurrently(monkeypatch) -> None:
    async with partitions() as (rest, loaded):
        last = TopicName.parse(f"persistent://public/default/orders-partition-{PARTITIONS - 1}")

        async def delete_last() -> None:
            if len(loaded) == PARTITIONS - 1 and loaded.loaded(last) is not None:
                await deletion_of(loaded).delete(last, force=True)

        between_turns(monkeypatch, delete_last)
        await rest.done("DELETE", f"{TOPIC}/partitions")
        assert (await rest.ask("GET", f"{TOPIC}/partitions")).status == 404


async def test_terminating_a_concurrently_deleted_partition_is_answered_404(monkeypatch) -> None:
    async with partitions() as (rest, loaded):
        last = TopicName.parse(f"persistent://public/default/orders-partition-{PARTITIONS - 1}")

        async def delete_last() -> None:
            ended = any(topic.terminated for topic in loaded)
            if ended and loaded.loaded(last) is not None:
                await deletion_of(loaded).delete(last, force=True)

        between_turns(monkeypatch, delete_last)
        answer = await rest.ask("POST", f"{TOPIC}/terminate/partitions")
        assert answer.status == 404
        assert answer.reason == f"Topic {last} not found"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{TOPIC}/subscription/s"),
        ("PUT", f"{TOPIC}/subscription/s/properties"),
        ("POST", f"{TOPIC}-partition-0/subscription/s/skip/1"),
        ("POST", f"{TOPIC}/subscription/s/skip_all"),
        ("POST", f"{TOPIC}/subscription/s/expireMessages/5"),
        ("POST", f"{TOPIC}/all_subscription/expireMessages/5"),
        ("DELETE", f"{TOPIC}/truncate"),
        ("POST", f"{NAMESPACE}/clearBacklog"),
        ("POST", f"{NAMESPACE}/clearBacklog/s"),
        ("POST", f"{NAMESPACE}/unsubscribe/s"),
    ],
)
async def test_a_change_is_answered_only_after_it_is_stored(
    method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with partitions() as (rest, loaded):
        stored = {}

        async def flushed(ledger: MemoryManagedLedger) -> None:
            stored[ledger.name] = ledger.cursors.get("s")

        monkeypatch.setattr(MemoryManagedLedger, "flushed", flushed)
        await rest.done(method, path, '{"a": "b"}' if path.endswith("properties") else None)
        monkeypatch.undo()
        assert len(stored) == (1 if "skip/" in path else PARTITIONS)
        for name, state in stored.items():
            subscription = (await loaded.get(TopicName.parse(name))).subscriptions.get("s")
            assert state == (subscription and subscription.cursor.state)


@pytest.mark.parametrize("path", ["subscription/new", "subscription/s/resetcursor/5"])
async def test_a_cursor_change_survives_an_unload_before_its_flush(path: str, monkeypatch) -> None:
    async with partitions() as (rest, loaded):
        flushed = MemoryManagedLedger.flushed

        async def unloaded_meanwhile(ledger: MemoryManagedLedger) -> None:
            monkeypatch.setattr(MemoryManagedLedger, "flushed", flushed)
            await loaded.unload(TopicName.parse(ledger.name))
            await flushed(ledger)

        monkeypatch.setattr(MemoryManagedLedger, "flushed", unloaded_meanwhile)
        await rest.done("POST" if "reset" in path else "PUT", f"{TOPIC}/{path}")
