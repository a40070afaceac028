"""Frames past the queue: with an empty queue they cost no entry, else they are not sent."""

import logging
from collections.abc import Callable
from functools import partial

import pytest

from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import WriteBufferMarks
from proto.transport.connection import Connection
from proto.transport.tls import TlsLayer
from proto.transport.writers import PLAIN_STEP_BYTES
from tests.support.clocks.settle import settle
from tests.support.peers.controlled_peer import tls_contexts
from tests.support.peers.memory_transport import MemoryTransport
from tests.unit.proto.transport.test_connection import Peer, connected
from tests.unit.proto.transport.test_connection_sockets import LOOPS, SEND_BUFFER_BYTES, FarEnd, run
from tests.unit.proto.transport.test_connection_sockets import Peer as SocketPeer

FRAME = b"f" * 1_000


class Payment:
    """Counts parts taken and released."""

    def __init__(self) -> None:
        self.taken = 0
        self.left = 0

    def part(self) -> Callable[[], object]:
        self.taken += 1
        return self._left

    def _left(self) -> None:
        self.left += 1

    @property
    def parts(self) -> tuple[int, int]:
        return self.taken, self.left


async def test_a_frame_accepted_immediately_by_the_kernel_creates_no_entry() -> None:
    peer, payment = connected(reads_at_once=True), Payment()
    sent = peer.write_through(FRAME, payment.part, 1_000)
    assert sent
    assert bytes(peer.memory.received) == FRAME
    assert payment.parts == (0, 0)
    assert (peer.outbound.pending_bytes, peer.totals.peak_bytes) == (0, 0)
    assert (
        peer.sender.written_bytes,
        peer.sender.acknowledged_bytes(),
        peer.sender.outstanding,
    ) == (
        1_000,
        1_000,
        False,
    )


async def test_a_frame_not_accepted_by_the_kernel_becomes_an_entry() -> None:
    peer, payment = connected(), Payment()
    assert peer.write_through(FRAME, payment.part, 900)
    assert payment.parts == (1, 0)
    assert (peer.outbound.pending_bytes, peer.totals.unpaid_bytes) == (1_096, 196)
    assert peer.sender.outstanding
    peer.memory.peer_reads(999)
    assert payment.parts == (1, 0)
    peer.memory.peer_reads(1)
    assert payment.parts == (1, 1)
    assert (peer.outbound.pending_bytes, peer.totals.unpaid_bytes) == (0, 0)
    assert bytes(peer.memory.received) == FRAME


async def test_no_frame_bypasses_queued_entries() -> None:
    peer, payment = connected(), Payment()
    peer.enqueue([b"entry"], 5)
    assert not peer.write_through(FRAME, payment.part, 0)
    peer.memory.peer_reads(10_000)
    assert (bytes(peer.memory.received), payment.parts) == (b"entry", (0, 0))
    assert peer.write_through(FRAME, payment.part, 0)


async def test_no_frame_bypasses_an_earlier_unsent_frame() -> None:
    peer, payment = connected(), Payment()
    first = peer.write_through(b"first", payment.part, 0)
    second = peer.write_through(b"second", payment.part, 0)
    peer.enqueue([b"entry"], 5)
    peer.memory.peer_reads(10_000)
    peer.memory.peer_reads(10_000)
    assert (first, second, payment.parts) == (True, False, (1, 1))
    assert bytes(peer.memory.received) == b"firstentry"


async def test_an_unsent_frame_counts_towards_the_marks() -> None:
    peer, payment = connected(WriteBufferMarks(1_000, 500)), Payment()
    peer.write_through(FRAME, payment.part, 1_000)
    assert (peer.outbound.writable, peer.writability) == (False, [False])
    peer.memory.peer_reads(1_000)
    assert (peer.outbound.writable, peer.writability) == (True, [False, True])


async def test_an_immediately_sent_frame_does_not_count_towards_the_marks() -> None:
    peer = connected(WriteBufferMarks(10, 5), reads_at_once=True)
    peer.write_through(FRAME, Payment().part, 0)
    assert (peer.outbound.writable, peer.writability) == (True, [])


async def test_an_unpaid_frame_counts_towards_the_cap_of_the_process() -> None:
    peer = connected()
    peer.totals.max_unpaid_bytes = 1_000
    peer.write_through(FRAME, Payment().part, 0)
    assert peer.gate.is_closed_for(PauseCause.PROCESS_OUTBOUND_FULL)
    peer.memory.peer_reads(1_000)
    assert peer.gate.open


async def test_a_lost_connection_releases_the_part_of_its_frame() -> None:
    peer, payment = connected(), Payment()
    peer.write_through(FRAME, payment.part, 0)
    peer.memory.breaks()
    assert (payment.parts, peer.held_at_end, peer.totals.pending_bytes) == ((1, 1), 0, 0)


async def test_no_frame_is_sent_on_a_closing_connection() -> None:
    peer, payment = connected(), Payment()
    peer.write_through(b"before", payment.part, 0)
    peer.close()
    peer.memory.peer_reads(6)
    assert not peer.write_through(b"behind", payment.part, 0)
    await settle()
    assert not peer.write_through(b"behind", payment.part, 0)
    assert bytes(peer.memory.received) == b"before"
    assert payment.parts == (1, 1)


async def test_no_frame_is_sent_on_a_transport_that_closed_itself() -> None:
    peer, payment = connected(), Payment()
    peer.memory.close()
    assert not peer.write_through(FRAME, payment.part, 0)
    assert (peer.memory.writes, payment.parts) == ([], (0, 0))


async def test_no_frame_is_sent_before_the_connection_exists() -> None:
    peer, payment = Peer(), Payment()
    assert not peer.write_through(FRAME, payment.part, 0)
    assert payment.parts == (0, 0)


async def test_a_failed_write_closes_its_peer(caplog: pytest.LogCaptureFixture) -> None:
    peer, payment = connected(), Payment()

    def broken(_: bytes) -> None:
        raise RuntimeError("the loop is broken")

    peer.memory.write = broken  # type: ignore[method-assign,assignment]
    with caplog.at_level(logging.ERROR):
        sent = peer.write_through(FRAME, payment.part, 0)
    await settle()
    # The entry is not sent again
    assert sent
    assert peer.closed
    assert payment.parts == (0, 0)
    assert "a write that failed" in caplog.text


# -- TLS ------------------------------------------------------------------------------------------


async def test_no_frame_bypasses_encryption() -> None:
    # Both ends, whose ciphertext the test carries
    server, client = tls_contexts()
    near = Connection(tls=TlsLayer(server, server_side=True))
    far = Connection(tls=TlsLayer(client, server_side=False, server_hostname="127.0.0.1"))
    ends = [MemoryTransport(near, reads_at_once=True), MemoryTransport(far, reads_at_once=True)]
    for end in ends:
        end.connect()
    for _ in range(6):
        for one, other in (ends, ends[::-1]):
            data = bytes(one.received)
            one.received.clear()
            if data:
                other.peer_sends(data)
    assert near.sender.established
    assert far.sender.established
    payment = Payment()
    assert not near.write_through(FRAME, payment.part, 0)
    assert (bytes(ends[0].received), payment.parts) == (b"", (0, 0))


# -- real sockets, both event loops ---------------------------------------------------------------


@LOOPS
def test_a_small_frame_is_accepted_immediately_by_the_kernel(new_loop) -> None:
    async def scenario(peer: SocketPeer, far: FarEnd) -> None:
        payment = Payment()
        for number in range(4):
            assert peer.write_through(bytes([number]) * 10, payment.part, 0)
        assert (payment.parts, peer.outbound.pending_bytes) == ((0, 0), 0)
        await far.read(40)
        assert bytes(far.received) == b"".join(bytes([number]) * 10 for number in range(4))

    run(new_loop, scenario)


@LOOPS
def test_a_frame_partly_accepted_by_the_kernel_is_an_entry_until_sent(new_loop) -> None:
    async def scenario(peer: SocketPeer, far: FarEnd) -> None:
        size, payment, left = 20 * SEND_BUFFER_BYTES, Payment(), list[str]()
        assert peer.write_through(b"a" * size, payment.part, size)
        assert not peer.write_through(b"b" * 10, payment.part, 0)
        peer.enqueue([b"c" * 10], 10, partial(left.append, "c"))
        await settle()
        assert (payment.parts, left) == ((1, 0), [])
        assert (peer.outbound.pending_bytes, peer.totals.unpaid_bytes) == (size + 202, 202)
        await far.read(size + 10)
        await settle()
        assert (payment.parts, left) == ((1, 1), ["c"])
        assert peer.outbound.pending_bytes == 0
        assert bytes(far.received) == b"a" * size + b"c" * 10
        assert peer.write_through(b"d", payment.part, 0)
        await far.read(1)
        assert far.received[-1:] == b"d"

    run(new_loop, scenario)


@LOOPS
def test_close_sends_a_frame_not_accepted_by_the_kernel(new_loop) -> None:
    async def scenario(peer: SocketPeer, far: FarEnd) -> None:
        size, payment = 20 * SEND_BUFFER_BYTES, Payment()
        peer.write_through(b"a" * size, payment.part, size)
        peer.close()
        await far.read(size + 1)
        assert bytes(far.received) == b"a" * size
        assert payment.parts == (1, 1)

    run(new_loop, scenario)


@LOOPS
def test_a_vanished_peer_releases_the_part_of_its_frame(new_loop) -> None:
    async def scenario(peer: SocketPeer, far: FarEnd) -> None:
        payment = Payment()
        peer.write_through(b"a" * 20 * SEND_BUFFER_BYTES, payment.part, 0)
        far.socket.close()
        await peer.wait_closed()
        assert (payment.parts, peer.outbound.pending_bytes) == ((1, 1), 0)
        assert not peer.write_through(b"b", payment.part, 0)

    run(new_loop, scenario)


async def test_several_buffers_are_sent_as_a_single_frame() -> None:
    peer, payment = connected(reads_at_once=True), Payment()
    sent = peer.write_through([b"head", memoryview(b"names"), b"tail"], payment.part, 0)
    assert sent
    assert bytes(peer.memory.received) == b"headnamestail"
    assert peer.sender.written_bytes == 13


async def test_a_frame_above_the_size_of_a_write_is_queued() -> None:
    peer = connected(reads_at_once=True)
    half = bytes(PLAIN_STEP_BYTES // 2)
    assert not peer.write_through([half, half, b"x"], Payment().part, 0)
    assert bytes(peer.memory.received) == b""
    assert peer.write_through([half, half], Payment().part, 0)
