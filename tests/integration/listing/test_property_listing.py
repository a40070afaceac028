"""Listings by properties, from an import to a client, directly and through the proxy."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import proto.PulsarApi_pb2 as pb
from broker.imports.importer import import_topics
from broker.stores.changes import TopicChanges
from broker.stores.property_rows import PROPERTIES_TYPE, PropertyRows
from client.exceptions import ServerResponseError
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from tests.support.processes.cluster import Cluster, cluster, until

INDEX = {"pulsarResourcesExtendedClassName": "broker.property_index:PropertyIndex"}
SCRIPTED = {"pulsarResourcesExtendedClassName": "tests.unit.broker.plugins.plug_ins:Scripted"}
NAMESPACE = "tenant/ns"
TEAMS = {"team": "t1"}


def topic(number: int) -> str:
    return f"persistent://{NAMESPACE}/topic-{number:03d}"


async def fill(parts: Cluster, directory: Path) -> None:
    """Import 300 topics: every third of team t1, every tenth in stage prod."""
    table = pa.table(
        {
            "namespace": [NAMESPACE] * 300,
            "topic": [topic(number) for number in range(300)],
            "properties": pa.array(
                [
                    [("team", f"t{number % 3}"), ("stage", "dev" if number % 10 else "prod")]
                    for number in range(300)
                ],
                PROPERTIES_TYPE,
            ),
        }
    )
    pq.write_table(table, directory / "topics.parquet")
    await import_topics(parts.broker.store, directory / "topics.parquet")


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_the_property_index_matches_all_properties(tmp_path, role: str, profile: str) -> None:
    async with cluster(profile=profile, broker=INDEX) as parts:
        await fill(parts, tmp_path)
        client = parts.client(role)
        team = await client.topics_of_namespace(NAMESPACE, properties=TEAMS)
        both = await client.topics_of_namespace(NAMESPACE, properties={**TEAMS, "stage": "prod"})
        none = await client.topics_of_namespace(NAMESPACE, properties={**TEAMS, "host": "h"})
        whole = await client.topics_of_namespace(NAMESPACE)
        assert list(team.topics) == [topic(number) for number in range(1, 300, 3)]
        assert list(both.topics) == [topic(number) for number in range(10, 300, 30)]
        assert (none.topics, none.topics_hash) == ((), "00000000")
        assert len(whole.topics) == 300
        assert team.topics_hash == topics_hash(team.topics)
        assert not team.filtered


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_listing_by_properties_is_filtered_by_pattern(tmp_path: Path, role: str) -> None:
    async with cluster(broker=INDEX) as parts:
        await fill(parts, tmp_path)
        client = parts.client(role)
        pattern = "persistent://tenant/ns/topic-.*0"
        found = await client.topics_of_namespace(NAMESPACE, pattern=pattern, properties=TEAMS)
        again = await client.topics_of_namespace(
            NAMESPACE, pattern=pattern, properties=TEAMS, topics_hash=found.topics_hash
        )
        assert list(found.topics) == [topic(number) for number in range(10, 300, 30)]
        assert found.filtered
        assert (again.changed, again.topics) == (False, ())


async def test_the_default_plug_in_ignores_properties(tmp_path: Path) -> None:
    async with cluster() as parts:
        await fill(parts, tmp_path)
        found = await parts.client().topics_of_namespace(NAMESPACE, properties={"no": "such"})
        assert len(found.topics) == 300


async def test_a_change_of_topics_and_properties_shows_in_the_next_listing(tmp_path: Path) -> None:
    async with cluster(broker=INDEX) as parts:
        await fill(parts, tmp_path)
        rows = PropertyRows.from_mappings({topic(0).encode(): {"team": "t1"}})
        removed = TopicChanges(removed=[topic(1).encode()], properties=rows)
        await parts.broker.store.apply(NamespaceName.parse(NAMESPACE), removed)
        found = await parts.client("broker").topics_of_namespace(NAMESPACE, properties=TEAMS)
        assert list(found.topics[:2]) == [topic(0), topic(4)]


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_simultaneous_equal_listings_share_a_single_plug_in_call(profile: str) -> None:
    async with cluster(profile=profile, broker=SCRIPTED) as parts:
        plug_in = parts.broker.lister.calls._resources
        plug_in.answer = [topic(7)]
        plug_in.go_on.clear()
        # As shipped, the very first request measures for simultaneous requests.
        await parts.client("broker").topics_of_namespace(NAMESPACE)
        asking = [
            asyncio.create_task(
                parts.client("broker").topics_of_namespace(NAMESPACE, properties=TEAMS)
            )
            for _ in range(5)
        ]
        await until(lambda: parts.broker.lookups.pending_requests == 5)
        await until(lambda: plug_in.asked)
        plug_in.go_on.set()
        found = await asyncio.gather(*asking)
        assert {one.topics for one in found} == {(topic(7),)}
        assert len(plug_in.asked) == 1


async def test_a_disconnected_client_cancels_its_plug_in_call() -> None:
    async with cluster(broker=SCRIPTED) as parts:
        plug_in = parts.broker.lister.calls._resources
        plug_in.go_on.clear()
        peer = await parts.peer("broker")
        request = pb.CommandGetTopicsOfNamespace(
            request_id=1, namespace=NAMESPACE, properties=[pb.KeyValue(key="team", value="t1")]
        )
        await peer.send(
            pb.BaseCommand(
                type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request
            )
        )
        await until(lambda: len(plug_in.asked) == 1)
        peer.close()
        await until(lambda: plug_in.cancelled == 1)
        await until(lambda: parts.broker.lister.calls.overdue == 0)


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_a_failing_plug_in_fails_its_request_with_the_plug_ins_name(profile: str) -> None:
    async with cluster(profile=profile, broker=SCRIPTED) as parts:
        plug_in = parts.broker.lister.calls._resources
        client = parts.client("broker")
        for answer in (ValueError("no index"), SystemExit(1), ["persistent://other/ns/a"], None):
            plug_in.answer = answer
            with pytest.raises(ServerResponseError) as caught:
                await client.topics_of_namespace(NAMESPACE, properties=TEAMS)
            assert caught.value.server_error == pb.MetadataError
            assert "tests.unit.broker.plugins.plug_ins:Scripted" in str(caught.value)
        plug_in.answer = [topic(1)]
        found = await client.topics_of_namespace(NAMESPACE, properties=TEAMS)
        assert found.topics == (topic(1),)


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_too_many_properties_are_refused_and_the_connection_stays_open(role: str) -> None:
    async with cluster() as parts:
        client = parts.client(role)
        many = {f"key-{number}": "v" for number in range(101)}
        for properties, key in (
            (many, "floodgateMaxListingProperties"),
            ({"k": "x" * 20_000}, "floodgateMaxListingPropertiesBytes"),
        ):
            with pytest.raises(ServerResponseError, match=key) as caught:
                await client.topics_of_namespace(NAMESPACE, properties=properties)
            assert caught.value.server_error == pb.NotAllowedError
        assert (await client.topics_of_namespace(NAMESPACE)).topics == ()


async def test_with_profile_pulsar_any_number_of_properties_is_accepted() -> None:
    async with cluster(profile="pulsar") as parts:
        many = {f"key-{number}": "v" * 100 for number in range(1_000)}
        found = await parts.client("broker").topics_of_namespace(NAMESPACE, properties=many)
        assert found.topics == ()


@pytest.mark.parametrize(
    ("keys", "announced"), [(INDEX, False), ({**INDEX, "floodgateProfile": "pulsar"}, True)]
)
async def test_a_filtering_plug_in_disables_topic_watches_except_with_profile_pulsar(
    keys: dict[str, str], announced: bool
) -> None:
    async with cluster(broker=keys) as parts:
        cnx = await parts.client("broker").connect()
        flags = cnx.server.feature_flags
        assert flags.supports_topic_watchers is announced
        assert flags.supports_topic_watcher_reconcile is announced
