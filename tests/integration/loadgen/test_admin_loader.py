"""The load generator prepares a broker like a real Pulsar."""

import pytest

from client.admin.pulsar_admin import PulsarAdmin
from loadgen.errors import LoadgenError
from loadgen.topics.loading import TopicLoader
from loadgen.topics.reading import TopicToCreate
from proto.names import TopicName
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster

PATH = "/admin/v2/persistent/loaded/ns"


def topic(local: str, partitions: int = 0, **properties: str) -> TopicToCreate:
    return TopicToCreate(TopicName.parse(f"persistent://loaded/ns/{local}"), partitions, properties)


async def test_topics_are_loaded_with_their_tenants_and_namespaces() -> None:
    async with cluster() as parts, PulsarAdmin(parts.broker.web_service_url) as admin:
        loader = TopicLoader(admin, concurrency=4)
        topics = [topic("plain"), topic("odd name é"), topic("parted", 3, team="red")]
        await loader.load(topics, lambda _: None)
        await loader.load(topics, lambda _: None)
        async with rest_client(parts.broker) as rest:
            listed = (await rest.ask("GET", PATH)).value
            metadata = (await rest.ask("GET", f"{PATH}/parted/partitions")).value
        assert len(listed) == 5
        assert metadata == {"partitions": 3, "deleted": False, "properties": {"team": "red"}}
        assert loader.existing == 3


async def test_a_refused_topic_is_reported_with_the_reason() -> None:
    async with cluster() as parts, PulsarAdmin(parts.broker.web_service_url) as admin:
        loader = TopicLoader(admin, concurrency=4)
        with pytest.raises(LoadgenError, match="HTTP 412: Can't create topic t-partition-0"):
            await loader.load([topic("t-partition-0")], lambda _: None)
