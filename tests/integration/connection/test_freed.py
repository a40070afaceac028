"""A lost connection is freed immediately, whatever its use."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

import pytest

from broker.cnx import ServerCnx
from broker.service import BrokerService
from client import Client
from client.authentication.authentication import AuthenticationToken
from limiter.flow.causes import PauseCause
from proto.transport.connection import Connection
from proxy.cnx import ProxyConnection
from proxy.service import ProxyService
from tests.support.processes.cluster import cluster, until
from tests.support.security.credentials import key_url, token

UPSTREAM = "org.apache.pulsar"


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_lost_connection_is_freed_without_the_garbage_collector(profile, role) -> None:
    async with cluster({"public/default": ["orders"]}, profile) as parts:
        used = await used_by(Client(parts.part(role).service_url), parts.part(role))
        await until(lambda: not any(cnx() for cnx in used), "they are freed")


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("forwards", ["false", "true"])
async def test_a_lost_authenticated_connection_is_freed(forwards: str, tmp_path: Path) -> None:
    (tmp_path / "proxy.jwt").write_text(token("proxy"))
    known = {
        "authenticationEnabled": "true",
        "authenticationProviders": f"{UPSTREAM}.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": key_url(),
    }
    passed_on = {
        "brokerClientAuthenticationPlugin": f"{UPSTREAM}.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"file://{tmp_path / 'proxy.jwt'}",
        "forwardAuthorizationCredentials": forwards,
    }
    checks = {"authenticateOriginalAuthData": forwards}
    orders = {"public/default": ["orders"]}
    async with cluster(orders, both=known, broker=checks, proxy=passed_on) as parts:
        shown = AuthenticationToken(token("ann", exp=4_102_444_800))
        client = Client(parts.proxy.service_url, authentication=shown)
        used = await used_by(client, parts.proxy)
        await until(lambda: not any(cnx() for cnx in used), "they are freed")


async def used_by(
    client: Client, server: BrokerService | ProxyService
) -> list[ref[ServerCnx | ProxyConnection]]:
    """Use a server as clients do, and leave; return the server's connections."""
    async with (
        client,
        await client.subscribe("orders", "audit") as consumer,
        await client.create_producer("orders") as producer,
    ):
        await producer.send(b"two teas")
        await consumer.acknowledge(await consumer.receive())
        await client.topics_of_namespace("public/default", pattern=".*")
        used = [ref(cnx) for cnx in server.connections]
    assert used
    return used


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_unclosed_connection_is_freed_with_its_event_loop() -> None:
    made = []

    def make() -> Connection:
        cnx = Connection()
        made.append(ref(cnx))
        return cnx

    async def connect_and_forget() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(make, "127.0.0.1", 0)
        await loop.create_connection(make, *server.sockets[0].getsockname())
        server.close()

    asyncio.run(connect_and_forget())
    gc.collect()
    assert made
    assert not any(cnx() for cnx in made)


async def test_an_open_connection_with_paused_reads_is_not_garbage_collected() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    _, made = await loop.create_connection(Connection, *server.sockets[0].getsockname())
    made.gate.close_for(PauseCause.FAULT)
    kept = ref(made)
    del _, made
    gc.collect()
    cnx = kept()
    assert cnx is not None
    cnx.abort()
    await cnx.wait_closed()
    server.close()
