"""Flow control after each byte read by the peer: exact, without a kernel in between."""

import pytest

from limiter.flow.outbound_buffer import ENTRY_OVERHEAD_BYTES, WriteBufferMarks
from tests.support.clocks.settle import settle
from tests.support.peers.controlled_peer import (
    FULL,
    LINKS,
    RECORD_BYTES,
    ControlledPeer,
    Flow,
    Link,
    WatchedConnection,
    batch_ends,
    controlled_peer,
    success_frames,
    until,
)

PLAIN, TLS = (link for link in LINKS if not link.sockets)
BOTH = pytest.mark.parametrize("link", [PLAIN, TLS], ids=lambda link: link.name)
FLOW = Flow(WriteBufferMarks(high_bytes=1_000, low_bytes=500))
SIZES = [10, 100_000, 1, 65_535, 2, 30_000, 65_537, 40_000, 40_000, 96]


def all_but_the_last_step(size: int, link: Link) -> int:
    """Return how much of an entry can be read before the last byte, or before the last byte's
    record.
    """
    return (size - 1) // RECORD_BYTES * RECORD_BYTES if link.tls else size - 1


# -- pending bytes --------------------------------------------------------------------------------


@BOTH
async def test_an_entry_counts_96_bytes_more_than_its_size_until_its_last_byte_is_read(
    link,
) -> None:
    async with controlled_peer(link) as (connection, peer):
        connection.queue("entry", bytes(40_000))
        most = all_but_the_last_step(40_000, link)
        await peer.reads(most)
        assert (connection.left, connection.totals.pending_bytes) == ([], 40_096)
        await peer.reads(40_000 - most)
        assert (connection.left, connection.totals.pending_bytes) == (["entry"], 0)


@BOTH
async def test_an_entry_larger_than_the_bytes_encrypted_ahead_is_released_as_a_whole(
    link: Link,
) -> None:
    async with controlled_peer(link) as (connection, peer):
        data = bytes(range(250)) * 4_000
        connection.queue("large", data)
        for _ in range(9):
            await peer.reads(100_000)
            assert connection.left == []
            assert connection.outbound.pending_bytes == 1_000_096
        await peer.reads(100_000)
        assert (connection.left, connection.outbound.pending_bytes) == (["large"], 0)
        assert bytes(peer.received) == data


async def test_after_each_byte_pending_bytes_are_the_sum_of_the_unsent_entries() -> None:
    async with controlled_peer(PLAIN) as (connection, peer):
        data = [bytes([number]) * size for number, size in enumerate(SIZES)]
        for number, one in enumerate(data):
            connection.queue(str(number), one)
        ends = batch_ends(SIZES)
        steps = sorted({position for end in ends for position in (end - 1, end, end + 1)})
        for position in (one for one in steps if one <= sum(SIZES)):
            await peer.reads(position - len(peer.received))
            gone = sum(end <= position for end in ends)
            assert connection.left == [str(number) for number in range(gone)], position
            left_behind = sum(size + ENTRY_OVERHEAD_BYTES for size in SIZES[gone:])
            assert connection.totals.pending_bytes == left_behind, position
        assert connection.left == [str(number) for number in range(len(SIZES))]
        assert bytes(peer.received) == b"".join(data)


# -- the marks ------------------------------------------------------------------------------------


@BOTH
async def test_a_connection_is_writable_at_the_high_mark_and_unwritable_above(link: Link) -> None:
    async with controlled_peer(link, FLOW) as (connection, _):
        connection.queue("a", bytes(404))
        connection.queue("b", bytes(404))
        at_the_mark = connection.outbound.pending_bytes, connection.outbound.writable
        connection.queue("c", b"")
        assert at_the_mark == (1_000, True)
        assert (connection.outbound.pending_bytes, connection.outbound.writable) == (1_096, False)
        assert connection.writability == [False]
        assert not connection.gate.open


@BOTH
@pytest.mark.parametrize(("rest", "told"), [(404, [False]), (403, [False, True])])
async def test_a_connection_is_unwritable_at_the_low_mark_and_writable_below(
    link: Link, rest: int, told: list[bool]
) -> None:
    async with controlled_peer(link, FLOW) as (connection, peer):
        # Given an entry after which 500 or 499 bytes are pending
        connection.queue("a", bytes(2_000))
        connection.queue("b", bytes(rest))
        await peer.reads(2_000)
        assert connection.outbound.pending_bytes == rest + 96
        assert connection.writability == told
        assert connection.gate.open is (len(told) == 2)
        await peer.reads(rest)
        assert connection.writability == [False, True]


async def test_a_partly_sent_entry_does_not_make_a_connection_writable() -> None:
    async with controlled_peer(PLAIN, FLOW) as (connection, peer):
        connection.queue("entry", bytes(1_000_000))
        # When all but 1 byte is read, far below the low mark
        await peer.reads(999_999)
        assert (connection.writability, connection.outbound.pending_bytes) == ([False], 1_000_096)


# -- ends -----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("leave", [ControlledPeer.closes, ControlledPeer.resets])
async def test_a_leaving_peer_releases_all_entries_in_the_turn_of_its_loss(link, leave) -> None:
    async with controlled_peer(link, Flow(pauses=False)) as (connection, peer):
        for name in ("a", "b", "c"):
            connection.queue(name, bytes(70_000))
        await peer.reads(70_001)
        assert callable(leave)
        leave(peer)
        await until(lambda: connection.closed, "the connection is gone")
        # Then before every other listener
        assert connection.end == (["a", "b", "c"], 0)


async def test_an_entry_queued_after_the_loss_is_released_immediately() -> None:
    async with controlled_peer(PLAIN) as (connection, peer):
        peer.resets()
        await settle()
        connection.queue("late", bytes(10))
        assert (connection.left, connection.totals.pending_bytes) == (["late"], 0)


# -- frames ----------------------------------------------------------------------------------------


def close_gate_at(connection: WatchedConnection, *request_ids: int) -> None:
    """Close the gate while handling given frames."""

    def on_frame(request_id: int) -> None:
        if request_id in request_ids:
            connection.gate.close_for(FULL)

    connection.on_frame = on_frame


@BOTH
async def test_delivery_stops_when_the_gate_closes_during_a_read(link: Link) -> None:
    """Upstream: PulsarFlowControlHandlerTest case 1."""
    async with controlled_peer(link) as (connection, peer):
        close_gate_at(connection, 1)
        # When five frames arrive together
        await peer.sends(success_frames(1, 2, 3, 4, 5))
        await settle()
        assert connection.taken == [1]
        assert connection.decoder.buffered_bytes > 0
        # When the gate opens, and closes at the second
        close_gate_at(connection, 2)
        connection.gate.open_for(FULL)
        await settle()
        assert connection.taken == [1, 2]
        # When the gate opens and stays open
        connection.gate.open_for(FULL)
        await settle()
        assert connection.taken == [1, 2, 3, 4, 5]
        assert connection.decoder.buffered_bytes == 0


@BOTH
async def test_a_single_frame_is_delivered_each_time_the_gate_opens(link: Link) -> None:
    """Upstream: PulsarFlowControlHandlerTest case 2."""
    async with controlled_peer(link) as (connection, peer):
        close_gate_at(connection, 1, 2, 3)
        await peer.sends(success_frames(1, 2, 3))
        await settle()
        for delivered in ([1], [1, 2], [1, 2, 3]):
            assert connection.taken == delivered
            connection.gate.open_for(FULL)
            await settle()
        assert connection.decoder.buffered_bytes == 0


@BOTH
async def test_a_pause_in_the_middle_of_a_frame_loses_no_bytes(link: Link) -> None:
    async with controlled_peer(link) as (connection, peer):
        close_gate_at(connection, 1)
        frames = success_frames(1, 2, 3)
        for start in range(0, len(frames), 7):
            await peer.sends(frames[start : start + 7])
        await settle()
        stopped = list(connection.taken)
        connection.gate.open_for(FULL)
        await settle()
        assert (stopped, connection.taken) == ([1], [1, 2, 3])


@BOTH
async def test_reading_pauses_after_each_response_until_the_peer_has_read_the_response(
    link: Link,
) -> None:
    async with controlled_peer(link, FLOW) as (connection, peer):
        # Given requests, each answered with more than the high mark
        connection.on_frame = lambda number: connection.queue(str(number), bytes(2_000))
        await peer.sends(success_frames(*range(1, 11)))
        await settle()
        # Then one request is in flight at a time, however many wait
        for number in range(1, 11):
            assert connection.taken == list(range(1, number + 1))
            await peer.reads(2_000)
            await settle()
        assert connection.totals.peak_bytes == 2_096
        assert connection.writability == [False, True] * 10
