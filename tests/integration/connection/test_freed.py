"""A connection that is lost is freed at once, whatever it was used for."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING
from weakref import ref

import pytest

from client import Client
from tests.support.processes.cluster import cluster, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_nothing_of_a_lost_connection_waits_for_the_collector(
    profile: str, role: str
) -> None:
    async with cluster({"public/default": ["orders"]}, profile) as parts:
        # Given
        server = parts.part(role)
        async with (
            Client(server.service_url) as client,
            await client.subscribe("orders", "audit") as consumer,
            await client.create_producer("orders") as producer,
        ):
            await producer.send(b"two teas")
            await consumer.acknowledge(await consumer.receive())
            await client.topics_of_namespace("public/default", pattern=".*")
            used = [ref(cnx) for cnx in server.connections]
        # When: the client has left
        # Then
        assert used
        await until(lambda: not any(cnx() for cnx in used), "they are freed")
