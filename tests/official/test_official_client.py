"""Commands of the official Python client, as received by a broker in this process."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pulsar
import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnx
from broker.stores.changes import TopicChanges
from proto.frames import Frame
from proto.names import NamespaceName
from tests.support.processes.cluster import Cluster, cluster

pytestmark = pytest.mark.official

Type = pb.BaseCommand
NAMESPACE = NamespaceName.parse("public/official")
PARTITIONED = "persistent://public/official/parted"
TOPICS = TopicChanges(
    [
        b"persistent://public/official/alpha-1",
        b"persistent://public/official/alpha-2",
        *(f"{PARTITIONED}-partition-{number}".encode() for number in range(3)),
    ],
    (),
    {PARTITIONED: 3},
)
T = TypeVar("T")


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the types of the broker's received commands, in order."""
    types: list[int] = []
    handle = ServerCnx.frame_received

    def record(cnx: ServerCnx, frame: Frame) -> None:
        types.append(frame.command().type)
        handle(cnx, frame)

    monkeypatch.setattr(ServerCnx, "frame_received", record)
    return types


@contextmanager
def official_client(url: str) -> Iterator[pulsar.Client]:
    quiet = logging.getLogger("official client")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    client = pulsar.Client(url, operation_timeout_seconds=30, logger=quiet)
    try:
        yield client
    finally:
        client.close()


async def with_client(parts: Cluster, role: str, use: Callable[[pulsar.Client], T]) -> T:
    """Use the blocking client in a thread while this loop serves."""

    def work() -> T:
        with official_client(parts.part(role).service_url) as client:
            return use(client)

    return await asyncio.to_thread(work)


async def fill(parts: Cluster) -> None:
    await parts.broker.store.apply(NAMESPACE, TOPICS)


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_get_topic_partitions_returns_partition_names(role: str, profile: str) -> None:
    async with cluster(profile=profile) as parts:
        await fill(parts)
        found = await with_client(
            parts,
            role,
            lambda client: [
                client.get_topic_partitions(PARTITIONED),
                client.get_topic_partitions("persistent://public/official/alpha-1"),
            ],
        )
        assert found == [
            [f"{PARTITIONED}-partition-{number}" for number in range(3)],
            ["persistent://public/official/alpha-1"],
        ]


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_partitions_in_a_missing_namespace_are_topic_not_found(role, profile) -> None:
    async with cluster(profile=profile) as parts:
        with pytest.raises(pulsar.PulsarException) as caught:
            await with_client(
                parts, role, lambda client: client.get_topic_partitions("persistent://no/where/t")
            )
        assert "TopicNotFound" in str(caught.value)


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_regex_subscription_looks_up_each_topic_and_subscribes(
    role: str, profile: str, received: list[int]
) -> None:
    pattern = re.compile("persistent://public/official/alpha.*")
    async with cluster(profile=profile) as parts:
        await fill(parts)
        await with_client(parts, role, lambda client: client.subscribe(pattern, "storm").close())
        attaching = [Type.GET_TOPICS_OF_NAMESPACE, Type.PARTITIONED_METADATA, Type.LOOKUP]
        attaching += [Type.SUBSCRIBE, Type.FLOW]
        first_seen = [kind for kind in dict.fromkeys(received) if kind in attaching]
        assert first_seen == attaching
        assert received.count(Type.LOOKUP) == received.count(Type.SUBSCRIBE) == 2
