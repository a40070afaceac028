"""A proxy with its broker away: it starts, reports the absence to clients, and recovers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

import proto.PulsarApi_pb2 as pb
from broker.service import BrokerService
from client.exceptions import ServerResponseError
from client.pulsar_client import PulsarClient
from limiter.clock import Clock
from proxy.service import ProxyService
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.byte_broker import ByteBroker
from tests.support.processes.cluster import broker_config, no_errors_logged, proxy_config, until
from tests.support.processes.free_port import free_port

PROFILES = ["pulsar", "floodgate"]
TOPIC = "persistent://public/default/any"
REQUESTS: list[Callable[[PulsarClient], Awaitable[object]]] = [
    lambda client: client.topics_of_namespace("public/default"),
    lambda client: client.lookup(TOPIC),
    lambda client: client.partitions(TOPIC),
]


def broker_at(port: int) -> BrokerService:
    return BrokerService(broker_config({"brokerServicePort": str(port)}))


@asynccontextmanager
async def proxy_before(
    url: str, profile: str = "floodgate", clock: Clock | None = None
) -> AsyncIterator[tuple[ProxyService, PulsarClient]]:
    # When time passes immediately, no peer could answer a PING.
    keep_alive = {} if clock is None else {"keepAliveIntervalSeconds": "0"}
    keys = {"brokerServiceURL": url, "floodgateProfile": profile, **keep_alive}
    with no_errors_logged():
        async with (
            ProxyService(proxy_config(keys), clock) as proxy,
            PulsarClient(proxy.service_url, 600) as client,
        ):
            yield proxy, client


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("request_of", REQUESTS)
async def test_a_request_is_answered_with_service_not_ready(profile, request_of) -> None:
    async with proxy_before(f"pulsar://127.0.0.1:{free_port()}", profile) as (proxy, client):
        for _ in range(2):
            with pytest.raises(ServerResponseError) as caught:
                await request_of(client)
            assert caught.value.server_error == pb.ServiceNotReady
            assert caught.value.message
            assert proxy.lookups.pending_requests == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_proxy_recovers_whenever_its_broker_starts(profile) -> None:
    port = free_port()
    async with proxy_before(f"pulsar://127.0.0.1:{port}", profile) as (_, client):
        for _ in range(2):
            with pytest.raises(ServerResponseError):
                await client.topics_of_namespace("public/default")
            async with broker_at(port):
                listing = await client.topics_of_namespace("public/default")
                assert listing.topics == ()


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_request_in_flight_is_service_not_ready_if_the_broker_is_lost(profile: str) -> None:
    async with (
        ByteBroker(_connected()) as broker,
        proxy_before(broker.url, profile) as (proxy, client),
    ):

        async def vanish() -> None:
            far = await broker.connection()
            await far.reader.readexactly(4)
            far.writer.transport.abort()

        with pytest.raises(ServerResponseError) as caught:
            await _both(client.topics_of_namespace("public/default"), vanish())
        assert caught.value.server_error == pb.ServiceNotReady
        assert "Disconnected from server at " in caught.value.message
        assert proxy.lookups.pending_requests == 0


async def test_a_request_fails_after_60_s_without_an_answer_of_the_broker() -> None:
    clock = ManualClock()
    async with (
        ByteBroker(_connected()) as broker,
        proxy_before(broker.url, clock=clock) as (proxy, client),
    ):

        async def pass_a_minute() -> None:
            far = await broker.connection()
            await far.reader.readexactly(4)
            await until(lambda: proxy.lookups.pending_requests)
            clock.advance(60)

        with pytest.raises(ServerResponseError) as caught:
            await _both(client.topics_of_namespace("public/default"), pass_a_minute())
        assert caught.value.server_error == pb.ServiceNotReady
        assert "did not answer in 60 s" in caught.value.message


async def test_a_request_fails_after_60_s_without_a_handshake_of_the_broker() -> None:
    clock = ManualClock()
    async with ByteBroker(None) as broker, proxy_before(broker.url, clock=clock) as (_, client):

        async def pass_a_minute() -> None:
            await broker.connection()
            clock.advance(60)

        with pytest.raises(ServerResponseError) as caught:
            await _both(client.topics_of_namespace("public/default"), pass_a_minute())
        assert caught.value.server_error == pb.ServiceNotReady
        assert "did not answer the handshake" in caught.value.message


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_invalid_broker_host_name_fails_the_request(profile: str) -> None:
    url = f"pulsar://{'a' * 70}:6650"
    async with proxy_before(url, profile) as (_, client):
        with pytest.raises(ServerResponseError) as caught:
            await client.topics_of_namespace("public/default")
        assert caught.value.server_error == pb.ServiceNotReady


def _connected() -> pb.BaseCommand:
    connected = pb.CommandConnected(server_version="x", protocol_version=21)
    return pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected)


async def _both(asking: Awaitable[object], meanwhile: Coroutine[object, object, None]) -> None:
    side = asyncio.get_running_loop().create_task(meanwhile)
    try:
        await asking
    finally:
        await side


async def test_a_listing_is_retried_at_another_broker_when_its_broker_is_lost() -> None:
    async with ByteBroker(_connected()) as going, BrokerService(broker_config({})) as other:
        urls = f"{going.url},{other.service_url.removeprefix('pulsar://')}"
        async with proxy_before(urls) as (_, client):

            async def go() -> None:
                far = await going.connection()
                await far.reader.readexactly(4)
                going.close()
                far.writer.transport.abort()

            asking = asyncio.ensure_future(client.topics_of_namespace("public/default"))
            await _both(asking, go())
            assert list(asking.result().topics) == []
