"""A connection over a transport whose peer reads on command."""

import asyncio
import logging
import struct
from collections.abc import Callable

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import OutboundTotals, WriteBufferMarks
from proto.errors import RemoteProtocolError
from proto.frames import Frame, encode_command, encode_payload_command
from proto.transport import connection, process_flow
from proto.transport.connection import BYTES_A_TURN, FRAMES_A_TURN, Connection
from proto.transport.outbound_queue import HANDOVER_BYTES
from proto.transport.process_flow import ProcessFlow, Turns
from tests.support.clocks.settle import settle, started
from tests.support.peers.memory_transport import MemoryTransport

FULL = PauseCause.OUTBOUND_BUFFER_FULL


def success(request_id: int) -> pb.BaseCommand:
    return pb.BaseCommand(
        type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=request_id)
    )


def frames(*request_ids: int) -> bytes:
    return b"".join(encode_command(success(number)) for number in request_ids)


class Peer(Connection):
    """Records reports; ``on_frame`` may do more."""

    def __init__(self, marks: WriteBufferMarks | None = None, turns: Turns | None = None) -> None:
        self.totals = OutboundTotals()
        self.turns = turns or Turns()
        super().__init__(marks=marks, process=ProcessFlow(self.totals, turns=self.turns))
        self.taken: list[int] = []
        self.writability: list[bool] = []
        self.ends: list[Exception | None] = []
        self.held_at_end: int | None = None
        self.on_frame: Callable[[int], object] = lambda _: None
        self.memory = MemoryTransport(self)

    def frame_received(self, frame: Frame) -> None:
        request_id = frame.command().success.request_id
        self.taken.append(request_id)
        self.on_frame(request_id)

    def writability_changed(self, *, writable: bool) -> None:
        self.writability.append(writable)

    def lost(self, error: Exception | None) -> None:
        self.ends.append(error)
        self.held_at_end = self.totals.pending_bytes


def connected(marks: WriteBufferMarks | None = None, *, reads_at_once: bool = False) -> Peer:
    peer = Peer(marks)
    peer.memory.reads_at_once = reads_at_once
    peer.memory.connect()
    return peer


def enqueue(peer: Peer, size: int, calls: list[str], name: str) -> None:
    """Queue an entry that reports departure."""
    peer.enqueue([b"x" * size], size, lambda: calls.append(name))


@pytest.fixture
async def peer() -> Peer:
    return connected()


# -- sending --------------------------------------------------------------------------------------


async def test_an_entry_is_released_when_the_peer_has_read_all_of_its_bytes() -> None:
    peer, left = connected(), list[str]()
    enqueue(peer, 100_000, left, "entry")
    peer.memory.peer_reads(99_999)
    assert (left, peer.outbound.pending_bytes) == ([], 100_096)
    peer.memory.peer_reads(1)
    assert (left, peer.outbound.pending_bytes) == (["entry"], 0)


async def test_an_entry_accepted_immediately_by_the_kernel_is_released_immediately() -> None:
    peer, left = connected(reads_at_once=True), list[str]()
    enqueue(peer, 100_000, left, "entry")
    assert (left, peer.outbound.pending_bytes) == (["entry"], 0)
    assert peer.totals.peak_bytes == 100_096


async def test_a_large_entry_is_written_alone_and_small_entries_together() -> None:
    peer, left = connected(), list[str]()
    enqueue(peer, HANDOVER_BYTES + 1, left, "large")
    for name in ("a", "b", "c"):
        enqueue(peer, HANDOVER_BYTES // 2, left, name)
    peer.memory.peer_reads(HANDOVER_BYTES + 1)
    after_the_large = list(left)
    peer.memory.peer_reads(HANDOVER_BYTES)
    after_two = list(left)
    peer.memory.peer_reads(HANDOVER_BYTES)
    assert (after_the_large, after_two) == (["large"], ["large", "a", "b"])
    assert left == ["large", "a", "b", "c"]
    assert peer.memory.writes == [HANDOVER_BYTES + 1, HANDOVER_BYTES, HANDOVER_BYTES // 2]


async def test_bytes_are_sent_in_the_order_of_queueing(peer: Peer) -> None:
    peer.send(success(1))
    peer.enqueue([frames(2), memoryview(frames(3))], 2 * len(frames(2)))
    peer.send(success(4))
    while peer.outbound.pending_bytes:
        peer.memory.peer_reads(3)
    assert bytes(peer.memory.received) == frames(1, 2, 3, 4)


async def test_an_entry_queued_by_a_release_callback_is_sent_last(peer: Peer) -> None:
    peer.enqueue([frames(1)], len(frames(1)), lambda: peer.send(success(3)))
    peer.send(success(2))
    while peer.outbound.pending_bytes:
        peer.memory.peer_reads(100)
    assert bytes(peer.memory.received) == frames(1, 2, 3)


async def test_a_second_drain_of_the_transport_is_a_no_op() -> None:
    peer, left = connected(), list[str]()
    enqueue(peer, 10, left, "a")
    peer.memory.peer_reads(10)
    peer.resume_writing()
    assert (left, peer.outbound.pending_bytes) == (["a"], 0)


async def test_writability_follows_the_marks() -> None:
    peer = connected(WriteBufferMarks(1_000, 500))
    enqueue(peer, 904, [], "a")
    assert peer.writability == []
    enqueue(peer, 104, [], "b")
    assert peer.writability == [False]
    peer.memory.peer_reads(903)
    assert peer.writability == [False]
    peer.memory.peer_reads(1)
    assert peer.writability == [False, True]
    assert peer.outbound.pending_bytes == 200


@pytest.mark.parametrize("how", ["breaks", "abort"])
async def test_every_entry_is_released_once_when_the_connection_is_lost(how) -> None:
    peer, left = connected(), list[str]()
    for name in ("handed over", "queued"):
        enqueue(peer, HANDOVER_BYTES, left, name)
    if how == "breaks":
        peer.memory.breaks(ConnectionResetError("gone"))
    else:
        peer.abort()
        await settle()
    # Before the loss is reported
    assert left == ["handed over", "queued"]
    assert (peer.held_at_end, peer.totals.pending_bytes) == (0, 0)
    assert [type(error) for error in peer.ends] == [
        ConnectionResetError if how == "breaks" else type(None)
    ]
    assert peer.closed


@pytest.mark.parametrize("how", ["never connected", "closed", "aborted", "lost"])
async def test_an_entry_queued_without_a_connection_is_released_immediately(how: str) -> None:
    peer, left = Peer(), list[str]()
    if how != "never connected":
        peer.memory.connect()
    if how == "closed":
        peer.close()
    elif how == "aborted":
        peer.abort()
    elif how == "lost":
        peer.memory.breaks()
    enqueue(peer, 10, left, "entry")
    assert left == ["entry"]
    assert (peer.outbound.pending_bytes, bytes(peer.memory.received)) == (0, b"")


# -- receiving ------------------------------------------------------------------------------------


async def test_frames_are_handled_as_they_become_complete() -> None:
    peer, data = connected(), frames(1, 2, 3)
    for start in range(0, len(data), 5):
        peer.memory.peer_sends(data[start : start + 5])
    assert peer.taken == [1, 2, 3]


async def test_a_lost_connection_keeps_no_received_bytes(peer: Peer) -> None:
    peer.memory.peer_sends(frames(1)[:-1])
    assert peer.decoder.buffered_bytes > 0
    peer.abort()
    await settle()
    assert peer.decoder.buffered_bytes == 0


async def test_a_closed_gate_stops_between_frames_and_buffered_frames_are_handled_first() -> None:
    peer = connected()
    peer.on_frame = lambda number: peer.gate.close_for(FULL) if number == 2 else None
    peer.memory.peer_sends(frames(1, 2, 3))
    peer.memory.peer_sends(frames(4))
    await settle()
    assert peer.taken == [1, 2]
    assert not peer.memory.is_reading()
    peer.gate.open_for(FULL)
    assert peer.taken == [1, 2]  # never from within the opener
    await settle()
    assert peer.taken == [1, 2, 3, 4]
    assert peer.memory.is_reading()


async def test_a_gate_that_closes_while_draining_stops_again(peer: Peer) -> None:
    peer.on_frame = lambda _: peer.gate.close_for(FULL)
    peer.memory.peer_sends(frames(1, 2, 3))
    peer.gate.open_for(FULL)
    await settle()
    assert peer.taken == [1, 2]
    assert not peer.memory.is_reading()


async def test_opening_the_gate_of_a_lost_connection_is_a_no_op(peer: Peer) -> None:
    peer.gate.close_for(FULL)
    peer.memory.peer_sends(frames(1))
    peer.gate.open_for(FULL)
    peer.memory.breaks()
    await settle()
    assert peer.taken == []
    peer.gate.close_for(FULL)


async def test_raw_mode_starts_with_the_undecoded_bytes() -> None:
    peer, raw = connected(), list[bytes]()
    peer.on_frame = lambda _: peer.receive_raw(raw.append)
    half = frames(3)[:5]
    peer.memory.peer_sends(frames(1, 2) + half)
    peer.memory.peer_sends(b"and more")
    assert peer.taken == [1]
    assert raw == [frames(2) + half, b"and more"]


async def test_without_undecoded_bytes_raw_mode_starts_with_the_next_chunk() -> None:
    peer, raw = connected(), list[bytes]()
    peer.receive_raw(raw.append)
    peer.memory.peer_sends(b"first")
    assert raw == [b"first"]


async def test_large_frames_are_kept_by_default(peer: Peer) -> None:
    large = pb.BaseCommand(type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=5))
    large.success.schema.name = "x" * 5_000
    large.success.schema.schema_data = b""
    large.success.schema.type = pb.Schema.String
    peer.memory.peer_sends(encode_command(large))
    assert peer.taken == [5]


# -- protocol violations and internal errors ------------------------------------------------------


def not_utf8() -> bytes:
    request = pb.CommandGetTopicsOfNamespace(request_id=1, namespace="public/default")
    command = pb.BaseCommand(
        type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request
    )
    return encode_command(command).replace(b"default", b"\xff" * 7)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff\xff\xff\xff", "a frame of 4294967295 bytes is announced"),
        (struct.pack(">IIB", 5, 1, 0xFF), "does not hold a protobuf command"),
        (not_utf8(), "String field had bad UTF-8"),
    ],
)
async def test_a_peer_violating_the_protocol_is_closed_and_logged_in_a_single_line(
    data: bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    peer, other = connected(), connected()
    peer.memory.peer_sends(frames(1) + data + frames(2))
    await settle()
    assert peer.taken == [1]
    assert (peer.closed, other.closed) == (True, False)
    (record,) = caplog.records
    assert sentence in record.getMessage()
    assert record.getMessage().startswith("closing 192.0.2.1:4711: ")
    assert record.exc_info is None
    assert record.levelno == logging.INFO


async def test_an_internal_error_closes_only_its_peer_and_is_logged_with_a_traceback(
    caplog,
) -> None:
    peer, other = connected(), connected()

    def fail(_: int) -> None:
        raise ZeroDivisionError

    peer.on_frame = fail
    peer.memory.peer_sends(frames(1, 2))
    await settle()
    assert (peer.taken, peer.closed, other.closed) == ([1], True, False)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.levelno == logging.ERROR


async def test_a_handler_may_refuse_a_frame_and_close_its_peer(peer: Peer) -> None:

    def refuse(_: int) -> None:
        raise RemoteProtocolError("not now")

    peer.on_frame = refuse
    peer.memory.peer_sends(frames(1, 2))
    await settle()
    assert (peer.taken, peer.closed) == ([1], True)


# -- ending ---------------------------------------------------------------------------------------


async def test_close_sends_queued_entries_first() -> None:
    peer, left = connected(), list[str]()
    enqueue(peer, 70_000, left, "a")
    enqueue(peer, 70_000, left, "b")
    peer.close()
    peer.close()
    peer.memory.peer_reads(70_000)
    await settle()
    still_open = not peer.closed
    peer.memory.peer_reads(70_000)
    await settle()
    assert still_open
    assert (left, peer.closed, peer.ends) == (["a", "b"], True, [None])
    assert len(peer.memory.received) == 140_000


async def test_close_without_queued_entries_closes_immediately(peer: Peer) -> None:
    waiting = await started(peer.wait_closed())
    peer.close()
    await waiting
    assert peer.closed
    assert peer.sender.transport is None
    peer.abort()
    peer.close()


@pytest.mark.parametrize("raw", [False, True])
async def test_bytes_received_after_close_are_neither_handled_nor_kept(raw: bool) -> None:
    peer, taken = connected(), list[bytes]()
    enqueue(peer, 10, [], "still on its way")
    if raw:
        peer.receive_raw(taken.append)
    peer.close()
    # Bytes in flight at the close
    for _ in range(100):
        peer.data_received(frames(1))
    assert (peer.taken, taken, peer.decoder.buffered_bytes) == ([], [], 0)


async def test_a_handler_that_closes_the_connection_receives_no_further_frames(peer: Peer) -> None:
    peer.on_frame = lambda _: peer.close()
    peer.memory.peer_sends(frames(1, 2))
    await settle()
    assert (peer.taken, peer.closed) == ([1], True)


async def test_the_end_of_the_stream_closes_the_connection() -> None:
    peer, left = connected(), list[str]()
    enqueue(peer, 100, left, "unread")
    peer.memory.peer_closes()
    await settle()
    assert (left, peer.closed, peer.ends) == (["unread"], True, [None])


async def test_a_caller_waiting_for_the_close_can_be_cancelled(peer: Peer) -> None:
    leaves, stays = await started(peer.wait_closed()), await started(peer.wait_closed())
    leaves.cancel()
    peer.memory.breaks()
    await stays
    assert leaves.cancelled()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (("127.0.0.1", 6650), "127.0.0.1:6650"),
        (("::1", 6650, 0, 0), "[::1]:6650"),
        ("/run/pulsar.sock", "/run/pulsar.sock"),
        (None, "unknown"),
        ("", "unknown"),
    ],
)
async def test_peer_addresses_are_written_in_the_usual_notation(name: object, text: str) -> None:
    peer = Peer()
    peer.memory._extra["peername"] = name  # type: ignore[attr-defined]
    peer.memory.connect()
    assert peer.peer == text
    assert repr(peer) == (f"<Peer {text} <OutboundBuffer 0 bytes, writable> <ReadGate open>>")


async def test_a_burst_of_small_frames_is_handled_in_turns(peer: Peer) -> None:
    numbers = list(range(2 * FRAMES_A_TURN + 10))
    peer.memory.peer_sends(frames(*numbers))
    # Reading stops until received bytes are handled, in turns
    assert peer.taken == numbers[:FRAMES_A_TURN]
    assert not peer.memory.is_reading()
    await asyncio.sleep(0)
    assert peer.taken == numbers[: 2 * FRAMES_A_TURN]
    await settle()
    assert peer.taken == numbers
    assert peer.memory.is_reading()


async def test_a_burst_of_large_frames_is_handled_in_turns_by_bytes(peer: Peer) -> None:
    large = [success(number) for number in range(10)]
    for command in large:
        command.success.schema.name = "x" * (BYTES_A_TURN // 4)
        command.success.schema.schema_data = b""
        command.success.schema.type = pb.Schema.String
    peer.memory.peer_sends(b"".join(map(encode_command, large)))
    assert peer.taken == [0, 1, 2, 3]
    assert not peer.memory.is_reading()
    await asyncio.sleep(0)
    assert peer.taken == [0, 1, 2, 3, 4, 5, 6, 7]
    await settle()
    assert peer.taken == list(range(10))
    assert peer.memory.is_reading()


async def test_payload_bytes_count_a_quarter_towards_a_turn() -> None:
    # Messages of nearly a whole turn each
    peer = connected()
    sends = [success(number) for number in range(10)]
    burst = b"".join(encode_payload_command(one, b"", bytes(BYTES_A_TURN)) for one in sends)
    peer.memory.peer_sends(burst)
    assert peer.taken == [0, 1, 2, 3]
    await asyncio.sleep(0)
    assert peer.taken == [0, 1, 2, 3, 4, 5, 6, 7]


async def test_a_frame_marked_as_expensive_ends_its_turn(peer: Peer) -> None:
    peer.on_frame = lambda number: setattr(peer, "turn_ended", number in (1, 4))
    peer.memory.peer_sends(frames(*range(5)))
    assert peer.taken == [0, 1]
    await asyncio.sleep(0)
    assert peer.taken == [0, 1, 2, 3, 4]
    # The next turn is a whole turn.
    await settle()
    peer.on_frame = lambda _: None
    peer.memory.peer_sends(frames(5, 6, 7))
    assert peer.taken == list(range(8))


async def test_a_turn_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each frame takes a third of a turn
    seconds = 0.0
    monkeypatch.setattr(connection, "perf_counter", lambda: seconds)
    peer = connected()

    def takes_a_while(_: int) -> None:
        nonlocal seconds
        seconds += process_flow.TURN_SECONDS / 3 + 1e-9

    peer.on_frame = takes_a_while
    peer.memory.peer_sends(frames(*range(5)))
    assert peer.taken == [0, 1, 2]
    await asyncio.sleep(0)
    assert peer.taken == [0, 1, 2, 3, 4]


async def test_turns_are_shorter_while_many_connections_want_turns(monkeypatch) -> None:
    # Three connections with waiting frames, and frames that take a third of a whole turn
    seconds = 0.0
    monkeypatch.setattr(connection, "perf_counter", lambda: seconds)
    peer = Peer(turns=Turns(wanted=3))
    peer.memory.connect()

    def takes_a_while(_: int) -> None:
        nonlocal seconds
        seconds += process_flow.TURN_SECONDS / 3 + 1e-9

    peer.on_frame = takes_a_while
    peer.memory.peer_sends(frames(*range(3)))
    assert (peer.taken, peer.turns.wanted) == ([0], 4)
    await settle()
    assert (peer.taken, peer.turns.wanted) == ([0, 1, 2], 3)


async def test_a_lost_connection_wants_no_turn(peer: Peer) -> None:
    peer.memory.peer_sends(frames(*range(FRAMES_A_TURN + 1)))
    assert peer.turns.wanted == 1
    peer.memory.breaks()
    assert peer.turns.wanted == 0


async def test_a_connection_lost_within_its_turn_wants_no_further_turn(peer: Peer) -> None:

    def ends(number: int) -> None:
        if number == FRAMES_A_TURN - 1:
            peer.memory.breaks()

    peer.on_frame = ends
    peer.memory.peer_sends(frames(*range(FRAMES_A_TURN + 1)))
    await settle()
    assert (len(peer.taken), peer.turns.wanted) == (FRAMES_A_TURN, 0)


def test_a_turn_has_a_minimum_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_flow, "TURN_SECONDS", 0.004)
    assert [Turns(wanted).seconds for wanted in (0, 1, 2, 8, 1_000)] == [
        *(0.004, 0.004, 0.002),
        *(0.0005, 0.0005),
    ]


async def test_frames_behind_an_unfinished_frame_wait_unread(peer: Peer) -> None:
    peer.on_frame = lambda number: setattr(peer, "unfinished", number == 1)
    peer.memory.peer_sends(frames(*range(5)))
    await settle()
    assert peer.taken == [0, 1]
    assert not peer.memory.is_reading()
    peer.unfinished = False
    await settle()
    assert peer.taken == list(range(5))
    assert peer.memory.is_reading()


async def test_a_burst_ending_with_its_turn_does_not_pause_reading(peer: Peer) -> None:
    peer.memory.peer_sends(frames(*range(FRAMES_A_TURN)))
    await settle()
    assert len(peer.taken) == FRAMES_A_TURN
    assert peer.memory.is_reading()


async def test_a_pause_in_the_middle_of_a_burst_lasts_beyond_its_turns(peer: Peer) -> None:
    last = FRAMES_A_TURN + 3
    peer.on_frame = lambda number: peer.gate.close_for(FULL) if number == last else None
    peer.memory.peer_sends(frames(*range(2 * FRAMES_A_TURN)))
    await settle()
    assert peer.taken[-1] == last
    assert not peer.memory.is_reading()
    peer.gate.open_for(FULL)
    await settle()
    assert len(peer.taken) == 2 * FRAMES_A_TURN
    assert peer.memory.is_reading()
