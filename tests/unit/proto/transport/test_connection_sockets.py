"""The same connection on real sockets, on both event loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import uvloop

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import OutboundTotals
from proto.frames import Frame, encode_command
from proto.transport.connection import Connection
from proto.transport.process_flow import ProcessFlow
from tests.support.clocks.settle import settle

SEND_BUFFER_BYTES = 16_384
SIZE_BYTES = 1_000_000
FRAMES = 60_000
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class Peer(Connection):
    """Records the ids of frames; the gate closes after the first."""

    def __init__(self) -> None:
        self.totals = OutboundTotals()
        super().__init__(process=ProcessFlow(self.totals))
        self.taken: list[int] = []
        self.first, self.last = asyncio.Event(), asyncio.Event()

    def frame_received(self, frame: Frame) -> None:
        self.taken.append(frame.command().success.request_id)
        if self.taken == [0]:
            self.gate.close_for(PauseCause.OUTBOUND_BUFFER_FULL)
            self.first.set()
        elif self.taken[-1] == FRAMES - 1:
            self.last.set()


class FarEnd:
    """The other socket of the pair, which reads and writes on command."""

    def __init__(self, end: socket.socket) -> None:
        self.received = bytearray()
        self.socket = end
        end.setblocking(False)

    async def read(self, size: int) -> None:
        """Read until ``size`` further bytes have arrived, or the stream ends."""
        loop, wanted = asyncio.get_running_loop(), len(self.received) + size
        while len(self.received) < wanted:
            data = await loop.sock_recv(self.socket, wanted - len(self.received))
            if not data:
                return
            self.received += data


@contextmanager
def socket_pair() -> Iterator[tuple[socket.socket, FarEnd]]:
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    try:
        yield near, FarEnd(far)
    finally:
        far.close()


async def connected(near: socket.socket) -> Peer:
    _, peer = await asyncio.get_running_loop().create_unix_connection(Peer, sock=near)
    return peer


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], test: Scenario) -> None:
    """Run a scenario on one of the event loops."""

    async def whole() -> None:
        with socket_pair() as (near, far):
            peer = await connected(near)
            try:
                await test(peer, far)
            finally:
                peer.abort()
                await peer.wait_closed()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


if TYPE_CHECKING:
    Scenario = Callable[[Peer, FarEnd], Coroutine[object, object, None]]


def success_frames(count: int) -> bytes:
    return b"".join(
        encode_command(
            pb.BaseCommand(
                type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=number)
            )
        )
        for number in range(count)
    )


@LOOPS
def test_an_entry_is_released_when_the_kernel_has_its_last_byte(new_loop) -> None:
    async def scenario(peer: Peer, far: FarEnd) -> None:
        read_when_it_left: list[int] = []
        parts = [bytes([number]) * (SIZE_BYTES // 10) for number in range(10)]
        peer.enqueue(parts, SIZE_BYTES, lambda: read_when_it_left.append(len(far.received)))
        await settle()
        assert read_when_it_left == []
        assert peer.totals.pending_bytes == SIZE_BYTES + 96
        await far.read(SIZE_BYTES)
        await settle()
        (read,) = read_when_it_left
        assert read >= SIZE_BYTES - 2 * SEND_BUFFER_BYTES
        assert peer.totals.pending_bytes == 0
        assert bytes(far.received) == b"".join(parts)

    run(new_loop, scenario)


@LOOPS
def test_many_entries_are_sent_in_order(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario(peer: Peer, far: FarEnd) -> None:
        sizes = [1, 100_000, 10, 65_536, 65_537, 3, 40_000, 40_000, 200_000] * 3
        left: list[int] = []
        for number, size in enumerate(sizes):
            peer.enqueue([bytes([number]) * size], size, partial(left.append, number))
        await far.read(sum(sizes))
        await settle()
        assert bytes(far.received) == b"".join(
            bytes([number]) * size for number, size in enumerate(sizes)
        )
        assert left == list(range(len(sizes)))
        assert peer.outbound.pending_bytes == 0

    run(new_loop, scenario)


@LOOPS
def test_a_closed_gate_stops_the_peer_and_loses_no_frames(new_loop) -> None:
    async def scenario(peer: Peer, far: FarEnd) -> None:
        loop = asyncio.get_running_loop()
        data = success_frames(FRAMES)
        sending = loop.create_task(loop.sock_sendall(far.socket, data))
        await peer.first.wait()
        await settle()
        stopped = list(peer.taken), sending.done(), peer.decoder.buffered_bytes
        peer.gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)
        peer.gate.close_for(PauseCause.PEER_LEG_FULL)
        peer.gate.open_for(PauseCause.PEER_LEG_FULL)
        await sending
        await peer.last.wait()
        assert stopped[:2] == ([0], False)
        assert stopped[2] < len(data) // 2
        assert peer.taken == list(range(FRAMES))

    run(new_loop, scenario)


@LOOPS
def test_close_sends_queued_entries_before_the_end_of_the_stream(new_loop) -> None:
    async def scenario(peer: Peer, far: FarEnd) -> None:
        for _ in range(5):
            peer.enqueue([b"x" * SIZE_BYTES], SIZE_BYTES)
        peer.close()
        await far.read(5 * SIZE_BYTES + 1)
        await peer.wait_closed()
        assert len(far.received) == 5 * SIZE_BYTES

    run(new_loop, scenario)


@LOOPS
def test_a_vanished_peer_releases_all_entries(new_loop) -> None:
    async def scenario(peer: Peer, far: FarEnd) -> None:
        left: list[int] = []
        for number in range(3):
            peer.enqueue([b"x" * SIZE_BYTES], SIZE_BYTES, partial(left.append, number))
        far.socket.close()
        await peer.wait_closed()
        assert left == [0, 1, 2]
        assert peer.totals.pending_bytes == 0

    run(new_loop, scenario)
