"""CONNECT with proxy_to_broker_url: a pipe of bytes to one broker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from proxy.service import ProxyService
from tests.support.peers.byte_broker import ByteBroker, ByteBrokerConnection, connected_command
from tests.support.peers.raw_peer import RawPeer, connect_command, topics_command
from tests.support.processes.cluster import (
    NOWHERE,
    cluster,
    no_errors_logged,
    proxy_config,
    topic_names,
    until,
)

NOISE = random.Random(7).randbytes(3_000_000)
INVALID_TARGET = "Target broker cannot be validated."
UNAVAILABLE_TARGET = "Target broker isn't available."
PEER_LEG_FULL = PauseCause.PEER_LEG_FULL
PROFILES = ["pulsar", "floodgate"]


class Pipes:
    """A proxy in front of a broker of bytes."""

    def __init__(self, proxy: ProxyService, broker: ByteBroker) -> None:
        self.proxy = proxy
        self.broker = broker
        self.peers: list[RawPeer] = []

    async def open(self) -> tuple[RawPeer, ByteBrokerConnection]:
        """Open a pipe; return both ends."""
        target = self.broker.url.removeprefix("pulsar://")
        self.peers.append(await RawPeer.shaken_hands(self.proxy.service_url, target=target))
        return self.peers[-1], await self.broker.connection()

    async def refused(self, target: str) -> pb.CommandError:
        """Request a pipe; return the error before the close."""
        async with await RawPeer.connect(self.proxy.service_url) as peer:
            await peer.send(connect_command(target))
            error = (await peer.command()).error
            assert await peer.rest() == b""
            return error


@asynccontextmanager
async def pipes(
    profile: str = "floodgate", answer: pb.BaseCommand | None = None, **keys: str
) -> AsyncIterator[Pipes]:
    with no_errors_logged():
        async with ByteBroker(answer or connected_command()) as broker:
            behind = {"brokerServiceURL": broker.url, "floodgateProfile": profile, **keys}
            async with ProxyService(proxy_config(behind)) as proxy:
                parts = Pipes(proxy, broker)
                try:
                    yield parts
                finally:
                    for peer in parts.peers:
                        peer.close()
                await until(lambda: not proxy.connections)
                assert proxy.totals.pending_bytes == 0


async def in_pieces(peer: RawPeer, data: bytes) -> None:
    """Send bytes cut at odd places."""
    sizes, start = random.Random(3), 0
    while start < len(data):
        end = start + sizes.choice([1, 2, 3, 7, 1_000, 70_000])
        await peer.send_bytes(data[start:end])
        start = end


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_pipe_leads_to_the_configured_broker(profile: str) -> None:
    names = topic_names("public/default", 10)
    async with cluster({"public/default": names}, profile) as parts:
        peer = await parts.peer(target=parts.broker.service_url.removeprefix("pulsar://"))
        await peer.send(topics_command(5, "public/default"))
        answer = (await peer.command()).getTopicsOfNamespaceResponse
        assert list(answer.topics) == names
        assert parts.proxy.lookups.pending_requests == 0
        assert parts.proxy.counters.get_topics_of_namespace_requests == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_connect_passes_client_details_to_the_broker_and_broker_details_back(
    profile: str,
) -> None:
    async with pipes(profile) as parts:
        target = parts.broker.url.removeprefix("pulsar://")
        async with await RawPeer.connect(parts.proxy.service_url) as peer:
            await peer.send(connect_command(target, protocol_version=17))
            connected = (await peer.command()).connected
            far = await parts.broker.connection()
        assert far.connect.client_version == "raw-peer"
        assert far.connect.protocol_version == 17
        assert not far.connect.HasField("proxy_to_broker_url")
        assert connected.max_message_size == 1_234_567
        assert connected.feature_flags.supports_topic_watchers


async def test_bytes_pass_unchanged_both_ways() -> None:
    async with pipes() as parts:
        near, far = await parts.open()
        far.writer.write(NOISE)
        async with asyncio.TaskGroup() as group:
            group.create_task(in_pieces(near, NOISE[::-1]))
            at_far = group.create_task(far.reader.readexactly(len(NOISE)))
            at_near = group.create_task(near.read(len(NOISE)))
        assert at_far.result() == NOISE[::-1]
        assert at_near.result() == NOISE


async def test_bytes_sent_right_after_connect_are_not_lost() -> None:
    async with pipes() as parts:
        target = parts.broker.url.removeprefix("pulsar://")
        async with await RawPeer.connect(parts.proxy.service_url) as peer:
            await peer.send(connect_command(target), topics_command(1, "public"))
            await peer.send_bytes(b"\xff\xff\xff\xff no frame at all")
            far = await parts.broker.connection()
            passed = await far.reader.readuntil(b"no frame at all")
            assert passed.endswith(b"\xff\xff\xff\xff no frame at all")
            assert b"public" in passed


async def test_a_slow_client_pauses_its_own_pipe_only() -> None:
    async with pipes(floodgateSocketSendBufferBytes="4096") as parts:
        slow, slow_far = await parts.open()
        quick, quick_far = await parts.open()
        slow_far.writer.write(NOISE * 4)
        await until(lambda: parts.proxy.totals.pending_bytes > 65_536)
        for _ in range(20):
            quick_far.writer.write(NOISE[:50_000])
            assert await quick.read(50_000) == NOISE[:50_000]
        assert slow_far.writer.transport.get_write_buffer_size() > len(NOISE)
        assert parts.proxy.totals.peak_bytes < 1_000_000
        assert await slow.read(4 * len(NOISE)) == NOISE * 4


async def test_a_slow_broker_pauses_the_client() -> None:
    async with pipes() as parts:
        near, far = await parts.open()
        far.reader._transport.pause_reading()
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(near.send_bytes(NOISE * 8))
            await until(lambda: parts.proxy.totals.pending_bytes > 65_536)
            for _ in range(100):
                await asyncio.sleep(0)
            assert not sending.done()
            assert parts.proxy.totals.peak_bytes < 1_000_000
            far.reader._transport.resume_reading()
            assert await far.reader.readexactly(8 * len(NOISE)) == NOISE * 8


@pytest.mark.parametrize("first", ["client", "broker"])
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_pipe_full_in_both_directions_resumes_when_a_side_reads(profile, first) -> None:
    # Both sides write and neither reads, until no byte moves in either direction
    async with pipes(profile, floodgateSocketSendBufferBytes="4096") as parts:
        near, far = await parts.open()
        far.reader._transport.pause_reading()
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(near.send_bytes(NOISE * 8))
            far.writer.write(NOISE * 8)
            (client_leg,) = parts.proxy.connections
            legs = (client_leg, client_leg.other)
            await until(lambda: all(leg.gate.is_closed_for(PEER_LEG_FULL) for leg in legs))
            assert not sending.done()
            # One side reads everything, without own writes
            if first == "client":
                assert await near.read(8 * len(NOISE)) == NOISE * 8
                # The other side's unread bytes are untouched
                assert not sending.done()
            far.reader._transport.resume_reading()
            assert await far.reader.readexactly(8 * len(NOISE)) == NOISE * 8
            if first == "broker":
                assert await near.read(8 * len(NOISE)) == NOISE * 8


@pytest.mark.parametrize("gone", ["client", "broker"])
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_full_pipe_is_closed_when_either_side_disconnects(profile: str, gone: str) -> None:
    # Neither side reads, and the other would write for ever
    async with pipes(profile, floodgateSocketSendBufferBytes="4096") as parts:
        near, far = await parts.open()
        far.reader._transport.pause_reading()
        sending = asyncio.create_task(near.send_bytes(NOISE * 8))
        far.writer.write(NOISE * 8)
        (client_leg,) = parts.proxy.connections
        broker_leg = client_leg.other
        legs = (client_leg, broker_leg)
        await until(lambda: all(leg.gate.is_closed_for(PEER_LEG_FULL) for leg in legs))
        if gone == "client":
            sending.cancel()
            near.close()
            # The broker writes everything, then reads the client's last bytes
            await until(lambda: far.writer.transport.get_write_buffer_size() == 0)
            far.reader._transport.resume_reading()
            with suppress(ConnectionResetError):  # Its later bytes are dropped.
                await far.reader.read()
        else:
            far.writer.transport.abort()
            await until(lambda: sending.done())
            near.close()
        await until(lambda: all(leg.closed for leg in legs), "the pipe did not end")


@pytest.mark.parametrize(
    "target",
    [
        "198.51.100.7:6650",
        "broker.example.com:6650",
        "127.0.0.1:22",
        "127.0.0.1:6652",
        "localhost:8080",
        "127.0.0.1:none",
        "pulsar://127.0.0.1:6650",
        "user@127.0.0.1:6650/path",
        "[::1:6650",
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_target_that_is_not_allowed_is_refused(profile: str, target: str) -> None:
    async with pipes(profile) as parts:
        error = await parts.refused(target)
        assert error.error == pb.ServiceNotReady
        assert error.message == INVALID_TARGET
        assert error.request_id == 2**64 - 1
        assert parts.proxy.connection_counters.create_fail == 1


@pytest.mark.parametrize("target", ["", "x"])
@pytest.mark.parametrize(
    ("profile", "code"),
    [("pulsar", pb.AuthenticationError), ("floodgate", pb.ServiceNotReady)],
)
async def test_a_target_without_a_port_is_refused(profile: str, code: int, target: str) -> None:
    async with pipes(profile) as parts:
        error = await parts.refused(target)
        assert error.error == code


async def test_profile_pulsar_refuses_a_client_that_is_a_proxy() -> None:
    connect = connect_command()
    connect.connect.proxy_version = "4.0.8"
    async with cluster(profile="pulsar") as parts:
        peer = await parts.stranger("proxy")
        await peer.send(connect)
        error = (await peer.command()).error
        assert (error.error, error.message) == (pb.NotAllowedError, "Must not provide proxyVersion")
        assert await peer.rest() == b""


async def test_profile_pulsar_closes_a_pipe_to_an_unreachable_broker_without_an_error() -> None:
    async with cluster(profile="pulsar", proxy={"brokerServiceURL": NOWHERE}) as parts:
        peer = await parts.stranger("proxy")
        await peer.send(connect_command(NOWHERE.removeprefix("pulsar://")))
        assert await peer.rest() == b""


async def test_a_refusal_of_connect_by_the_broker_is_passed_to_the_client() -> None:
    refusal = pb.CommandError(request_id=1, error=pb.AuthenticationError, message="no")
    async with pipes(answer=pb.BaseCommand(type=pb.BaseCommand.ERROR, error=refusal)) as parts:
        error = await parts.refused(parts.broker.url.removeprefix("pulsar://"))
        assert error.error == pb.AuthenticationError
        assert error.message == "no"


@pytest.mark.parametrize(
    "answer",
    [
        pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()),
        topics_command(1, "public/default"),
    ],
)
async def test_a_target_that_answers_connect_with_another_command_is_unavailable(answer) -> None:
    async with pipes(answer=answer) as parts:
        error = await parts.refused(parts.broker.url.removeprefix("pulsar://"))
        assert error.error == pb.ServiceNotReady
        assert error.message == UNAVAILABLE_TARGET


async def test_an_unreachable_target_is_reported_as_unavailable() -> None:
    async with pipes(brokerServiceURL="pulsar://127.0.0.1:1") as parts:
        error = await parts.refused("127.0.0.1:1")
        assert error.message == UNAVAILABLE_TARGET


async def test_closing_the_client_side_closes_the_broker_side() -> None:
    async with pipes() as parts:
        near, far = await parts.open()
        near.close()
        assert await far.reader.read() == b""


async def test_closing_the_broker_side_closes_the_client_side_after_all_bytes() -> None:
    async with pipes() as parts:
        near, far = await parts.open()
        far.writer.write(NOISE)
        far.writer.close()
        assert await near.rest() == NOISE


async def test_a_disconnect_before_the_pipe_is_open_closes_the_broker_side() -> None:
    async with pipes() as parts:
        parts.broker.answer = None
        async with await RawPeer.connect(parts.proxy.service_url) as peer:
            await peer.send(connect_command(parts.broker.url.removeprefix("pulsar://")))
            far = await parts.broker.connection()
        (cnx,) = parts.proxy.connections
        cnx.abort()
        assert await far.reader.read() == b""


async def test_a_stopping_proxy_closes_its_open_pipes() -> None:
    async with pipes() as parts:
        near, far = await parts.open()
        await parts.proxy.__aexit__(None, None, None)
        assert await near.rest() == b""
        assert await far.reader.read() == b""
