"""Measurement namespaces exist for a block and vanish completely."""

import asyncio

import pytest

from client.admin.pulsar_admin import PulsarAdmin
from loadgen.errors import LoadgenError
from loadgen.studies.advise.namespaces import shapes_of_cluster
from loadgen.studies.advise.question import NamespaceShape
from loadgen.topics.own_namespaces import TENANT, own_namespaces
from proto.names import NamespaceName, TopicName
from tests.support.processes.cluster import Cluster, cluster

SIZES = {"small": 10, "large": 100, "empty": 0}


def seen(url: str) -> tuple[tuple[str, ...], tuple[NamespaceShape, ...]]:
    with own_namespaces(url, SIZES, 100) as names:
        return names, shapes_of_cluster(url, [each for each in names if "empty" not in each])


def failing(url: str) -> None:
    with own_namespaces(url, SIZES, 100):
        raise InterruptedError


async def test_own_namespaces_have_the_requested_sizes_and_are_deleted_afterwards() -> None:
    async with cluster() as parts:
        url = parts.broker.web_service_url
        names, shapes = await asyncio.to_thread(seen, url)
        with pytest.raises(InterruptedError):
            await asyncio.to_thread(failing, url)
        assert names == tuple(f"{TENANT}/{each}" for each in SIZES)
        assert {each.name: each.topics for each in shapes} == {
            f"{TENANT}/small": 10,
            f"{TENANT}/large": 100,
        }
        assert {round(each.name_bytes / each.topics) for each in shapes} <= {97, 98, 99, 100}
        async with PulsarAdmin(url) as admin:
            assert TENANT not in await admin.tenants.list()


async def test_topics_across_a_namespace_are_loaded_before_the_measurement() -> None:
    def loaded_within(parts: Cluster) -> int:
        with own_namespaces(parts.broker.web_service_url, {"large": 100}, 100):
            return len(parts.broker.messaging.loaded_topics)

    async with cluster() as parts:
        assert await asyncio.to_thread(loaded_within, parts) >= 25


async def test_a_foreign_topic_and_its_namespace_are_not_deleted() -> None:
    async with cluster() as parts:
        url = parts.broker.web_service_url
        other = TopicName.parse(f"persistent://{TENANT}/small/of-somebody-else")
        async with PulsarAdmin(url) as admin:
            await admin.tenants.create(TENANT)
            await admin.namespaces.create(other.namespace)
            await admin.topics.create(other)
            with pytest.raises(LoadgenError, match="Deleting what was measured with"):
                await asyncio.to_thread(failing, url)
            batches = admin.namespaces.topics(NamespaceName.parse(f"{TENANT}/small"))
            assert [name async for batch in batches for name in batch] == [str(other)]
