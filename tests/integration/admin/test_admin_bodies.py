"""Admin request bodies: large, or with numbers as Java reads them."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.admin.negotiation import METADATA_TYPE
from broker.topics.properties import MAX_PROPERTIES, MAX_PROPERTY_BYTES
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import cluster

TOPICS = "/admin/v2/persistent/public/default"
TENANT = "/admin/v2/tenants/t"
MANY = 10_000


@asynccontextmanager
async def broker(profile: str = "floodgate") -> AsyncIterator[RestClient]:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        yield rest


# -- many values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "body",
    [
        "[" + "1," * MANY + "1]",
        '["\\",\\\\",' + "1," * MANY + "1]",
        '["\\u2222",' + "[]," * MANY + "1]",
        '["∢",' + "[]," * MANY + "1]",
        "{" + ",".join(f'"{key}":1' for key in range(MANY + 1)) + "}",
        "[" + '"",' * 3 * MANY + "1]",
    ],
    ids=["numbers", "behind escapes", "arrays", "behind a quote's byte", "an object", "strings"],
)
async def test_a_body_with_more_than_10000_values_is_refused(body: str, encoding: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", TENANT, body.encode(encoding))
        assert (answer.status, answer.text) == (400, "the body has more than 10000 values")


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_null_properties_of_a_partitioned_topic_are_omitted(profile: str) -> None:
    async with broker(profile) as rest:
        body = '{"partitions": 3, "properties": {"a": null, "b": "c"}}'
        answer = await rest.ask("PUT", f"{TOPICS}/parts/partitions", body, METADATA_TYPE)
        assert answer.status == 204
        found = (await rest.ask("GET", f"{TOPICS}/parts/partitions")).value
        assert found == {"partitions": 3, "deleted": False, "properties": {"b": "c"}}


async def test_a_body_with_just_under_10000_values_is_accepted() -> None:
    async with broker() as rest:
        roles = [f'{number},"\\' for number in range(MANY - 10)]
        body = {"allowedClusters": ["standalone"], "adminRoles": roles}
        await rest.done("PUT", TENANT, json.dumps(body))
        assert (await rest.ask("GET", TENANT)).value["adminRoles"] == roles


async def test_the_largest_allowed_properties_of_a_topic_are_stored() -> None:
    async with broker() as rest:
        keys = [f"{number:02}" for number in range(MAX_PROPERTIES)]
        # Most of the bound, the rest is the name's.
        properties = dict.fromkeys(keys, "," * (MAX_PROPERTY_BYTES - 100))
        await rest.done("PUT", f"{TOPICS}/t", json.dumps(properties))
        assert (await rest.ask("GET", f"{TOPICS}/t/properties")).value == properties


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["1_0", "1e1", "1.5", "10.", "0x2", "nan", "inf", "1\u00b2", "99999999999", "9" * 5000]
)
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_text_that_is_no_java_int_is_refused_as_a_count(body: str, profile: str) -> None:
    async with broker(profile) as rest:
        text = json.dumps(body)
        number = await rest.ask("PUT", f"{TOPICS}/t/partitions", text)
        value = await rest.ask(
            "PUT", f"{TOPICS}/t/partitions", f'{{"partitions":{text}}}', METADATA_TYPE
        )
        # Then, as asked of a real broker
        assert (number.status, value.status) == (400, 400)


@pytest.mark.parametrize("body", ["10", " 10 ", "+10", "010", "\u0661\u0660"])
async def test_text_that_is_a_java_int_is_accepted_as_a_count(body: str) -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TOPICS}/t/partitions", json.dumps(body))
        assert (await rest.ask("GET", f"{TOPICS}/t/partitions")).value["partitions"] == 10


@pytest.mark.parametrize("body", ["", " "])
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_empty_text_counts_as_zero_partitions_and_is_refused(body: str, profile: str) -> None:
    async with broker(profile) as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t/partitions", json.dumps(body))
        assert (answer.status, answer.reason) == (
            406,
            "Number of partitions should be more than 0",
        )


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\xff", "text/plain"),
        (b"2", "text/plain; charset=bogus"),
        (b"2", "text/plain; charset=hex"),
        (b"2", "text/plain; charset=utf-16"),
        (b"1_0", "text/plain"),
        (b" 2", "text/plain"),
        (b"2\n", "text/plain"),
        (b"2.0", "text/plain"),
        (b"99999999999", "text/plain"),
        (b"9" * 5000, "text/plain"),
    ],
)
async def test_profile_pulsar_answers_500_to_text_without_number(body, media_type, caplog) -> None:
    async with broker("pulsar") as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t/partitions", body, media_type)
        # Then, as asked of a real broker
        assert answer.status == 500
        assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("body", ["2", "+2", "02", "\u0662"])
async def test_profile_pulsar_accepts_a_plain_text_partition_count(body: str) -> None:
    async with broker("pulsar") as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t/partitions", body.encode(), "text/plain")
        assert answer.status == 204
        assert (await rest.ask("GET", f"{TOPICS}/t/partitions")).value["partitions"] == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [('{"a": "b"}', 406), ('{"a": null}', 406), ("NaN", 400), ('{"a": {}}', 400), ("[", 400)],
)
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_properties_of_a_non_persistent_topic_are_parsed_before_they_are_refused(
    profile: str, body: str, status: int
) -> None:
    async with broker(profile) as rest:
        path = f"{TOPICS.replace('persistent', 'non-persistent')}/t/properties"
        assert (await rest.ask("PUT", path, body)).status == status
