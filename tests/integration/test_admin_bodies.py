"""Bodies of admin requests of very many values."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from broker.topic_properties import MAX_KEY_BYTES, MAX_PROPERTIES, MAX_VALUE_BYTES
from tests.support.cluster import cluster
from tests.support.rest_client import RestClient, rest_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOPICS = "/admin/v2/persistent/public/default"
TENANT = "/admin/v2/tenants/t"
MANY = 10_000


@asynccontextmanager
async def broker(profile: str = "floodgate") -> AsyncIterator[RestClient]:
    """A broker, and a client of its REST."""
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
async def test_a_body_of_very_many_values_is_not_parsed(body: str, encoding: str) -> None:
    async with broker() as rest:
        # When
        answer = await rest.ask("PUT", TENANT, body.encode(encoding))
        # Then
        assert (answer.status, answer.text) == (400, "the body has more than 10000 values")


async def test_a_body_of_many_values_is_taken() -> None:
    async with broker() as rest:
        roles = [f'{number},"\\' for number in range(MANY - 10)]
        body = {"allowedClusters": ["standalone"], "adminRoles": roles}
        # When
        await rest.done("PUT", TENANT, json.dumps(body))
        # Then
        assert (await rest.ask("GET", TENANT)).value["adminRoles"] == roles


async def test_the_largest_properties_of_a_topic_are_taken() -> None:
    async with broker() as rest:
        keys = [f"{number:02}".ljust(MAX_KEY_BYTES, ",") for number in range(MAX_PROPERTIES)]
        properties = dict.fromkeys(keys, "," * MAX_VALUE_BYTES)
        # When
        await rest.done("PUT", f"{TOPICS}/t", json.dumps(properties))
        # Then
        assert (await rest.ask("GET", f"{TOPICS}/t/properties")).value == properties
