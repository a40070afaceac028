"""A stuck peer asks for everything at once and leaves the answers where they are."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.stuck.peer import ListingPeer
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.close_watch import LOOK_EVERY_SECONDS, CloseWatch
from loadgen.stuck_peers.scenario import peer_plans
from loadgen.stuck_peers.summary import PeerEnd
from proto.frames import encode_command
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.processes.cluster import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONNECTED = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.CONNECTED,
        connected=pb.CommandConnected(server_version="s", protocol_version=20),
    )
)


class Desk:
    """A peer with a real socket, the server's end of it, and a clock in the test's hands."""

    def __init__(self, **changes) -> None:
        scenario = StuckScenario(
            service_url="pulsar://127.0.0.1:1",
            namespaces=(NamespaceExpectation(name="load/ns"),),
            **changes,
        )
        self.clock = ManualClock()
        context = ClientContext(
            scenario,
            RequestCounters(),
            lambda: None,
            RunTime(self.clock.now, self.clock.now()),
            self.clock,
        )
        (plan,) = peer_plans(scenario, 0, 1)
        self.watch = CloseWatch(self.clock, loopback=True)
        self.peer = ListingPeer(plan, context, self.watch)
        listening = socket.create_server(("127.0.0.1", 0))
        self.ours = socket.create_connection(listening.getsockname())
        self.server, _ = listening.accept()
        listening.close()
        self.server.setblocking(False)
        self.ours.setblocking(False)

    async def connected(self) -> Desk:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self.peer, sock=self.ours)
        await loop.sock_sendall(self.server, CONNECTED)
        await self.peer.handshake
        await self.peer.connected()
        await loop.sock_recv(self.server, 65_536)  # its CONNECT
        return self

    async def bytes_at_the_server(self, count: int) -> bytes:
        loop, data = asyncio.get_running_loop(), b""
        while len(data) < count:
            data += await loop.sock_recv(self.server, count - len(data))
        return data

    async def requests(self, count: int) -> list[int]:
        """Read so many requests at the server's end and return their ids."""
        ids = []
        for _ in range(count):
            (size,) = struct.unpack(">I", await self.bytes_at_the_server(4))
            command = pb.BaseCommand.FromString((await self.bytes_at_the_server(size))[4:])
            ids.append(command.getTopicsOfNamespace.request_id)
        return ids

    def flood(self) -> None:
        """Send until the kernel takes no more."""
        try:
            while True:
                self.server.send(b"\0" * 65_536)
        except BlockingIOError:
            pass


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = await Desk(stuck_pipelined=3).connected()
    yield desk
    desk.peer.leave()
    desk.server.close()


async def test_it_asks_for_all_listings_in_one_go(desk: Desk) -> None:
    # When
    desk.clock.advance(2)
    desk.peer.begin()
    # Then
    assert await desk.requests(3) == [1, 2, 3]
    assert desk.peer.record.asked_seconds == 2


async def test_it_reads_nothing(desk: Desk) -> None:
    # Given
    desk.peer.begin()
    # When
    desk.flood()
    await settle()
    # Then
    assert desk.peer.record.bytes == 0
    with pytest.raises(BlockingIOError):
        desk.server.send(b"x")


async def test_one_that_reads_takes_no_more_than_its_rate() -> None:
    # Given
    desk = await Desk(stuck_pipelined=1, stuck_read_rate_bytes_per_second=10_000.0).connected()
    desk.peer.begin()
    # When a listing of any length begins to come
    desk.server.send(b"\x00\x10\x00\x04\x00\x10\x00\x00" + b"\x08\x21\x8a\x02" + b"\0" * 50_000)
    await until(lambda: desk.peer.record.bytes >= 1_000)
    await settle()
    # Then it takes a burst of one tenth of a second, and then waits for time to pass
    assert desk.peer.record.bytes == 1_000
    desk.clock.advance(0.1)
    await until(lambda: desk.peer.record.bytes >= 2_000)
    desk.peer.leave()
    desk.server.close()


async def test_a_server_that_resets_is_noticed_with_the_moment(desk: Desk) -> None:
    # Given
    desk.peer.begin()
    desk.flood()
    desk.clock.advance(3)
    # When
    desk.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    desk.server.close()
    desk.clock.advance(LOOK_EVERY_SECONDS)
    # Then
    record = desk.peer.record
    assert record.end is PeerEnd.CLOSED
    assert record.gone_seconds == pytest.approx(3, abs=2 * LOOK_EVERY_SECONDS)


async def test_a_server_that_closes_behind_unread_bytes_is_noticed_as_well(desk: Desk) -> None:
    # Given
    desk.peer.begin()
    await desk.requests(3)
    desk.flood()
    desk.clock.advance(3)
    # When
    desk.server.close()
    desk.clock.advance(1)
    # Then
    assert desk.peer.record.end is PeerEnd.CLOSED


async def test_leaving_does_not_undo_that_the_server_had_closed(desk: Desk) -> None:
    # Given
    desk.peer.begin()
    desk.server.close()
    desk.clock.advance(1)
    closed_seconds = desk.peer.record.gone_seconds
    # When
    desk.clock.advance(5)
    desk.peer.leave()
    # Then
    assert (desk.peer.record.end, desk.peer.record.gone_seconds) == (
        PeerEnd.CLOSED,
        closed_seconds,
    )


async def test_leaving_is_told_from_being_closed_and_is_watched_no_more(desk: Desk) -> None:
    # When
    desk.peer.begin()
    desk.clock.advance(4)
    desk.peer.leave()
    # Then
    assert (desk.peer.record.end, desk.peer.record.gone_seconds) == (PeerEnd.LEFT, 4)
    assert len(desk.watch) == 0


async def test_a_peer_without_connection_asks_for_nothing() -> None:
    # Given
    desk = Desk()
    # When
    desk.peer.unreachable("Connection refused")
    desk.peer.begin()
    desk.peer.leave()
    # Then
    record = desk.peer.record
    assert (record.end, record.reason) == (PeerEnd.UNREACHABLE, "Connection refused")
    assert (record.asked_seconds, record.gone_seconds) == (None, None)
    desk.peer.handshake.cancel()
    desk.ours.close()
    desk.server.close()


async def test_beyond_the_loopback_the_kernel_is_not_asked() -> None:
    # Given a connection that stands
    desk = Desk()
    watch, closed = CloseWatch(desk.clock, loopback=False), []
    watch.watch(desk.ours, lambda: closed.append(True))
    desk.flood()
    desk.clock.advance(1)
    # When it is closed behind unread bytes
    desk.server.close()
    desk.clock.advance(10)
    # Then nobody can know
    assert closed == []
    assert len(watch) == 1
    desk.peer.handshake.cancel()
    watch.forget(desk.ours.fileno())
    desk.ours.close()
