"""Overtaking while a connection is paused, and the memory of waiting frames."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from limiter.flow.totals import FlowTotals
from proto.errors import FrameTooLargeError
from proto.frames import Frame, FrameDecoder, encode_command
from proto.transport.frame_intake import (
    MAX_ANSWERED_OVERTAKERS,
    MAX_PARKED_BYTES,
    MAX_PARKED_FRAMES,
    OVERTAKEN,
    OVERTAKES,
    FrameIntake,
)
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many
from tests.support.processes.commands import TYPES, complete_command, type_name

Kind = pb.BaseCommand
OVERTAKE = ["PING", "PONG", "ACK", "FLOW", "CLOSE_PRODUCER", "CLOSE_CONSUMER"]
ARE_OVERTAKEN = ["LOOKUP", "PARTITIONED_METADATA", "GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST"]


def frame_of(kind: int) -> bytes:
    """Return the whole frame of a command."""
    return encode_command(complete_command(kind))


def sized_lookup(size: int) -> bytes:
    """Return a frame of a lookup announcing exactly ``size`` bytes."""
    for length in range(max(0, size - 40), size):
        lookup = pb.CommandLookupTopic(topic="t" * length, request_id=1)
        data = encode_command(pb.BaseCommand(type=Kind.LOOKUP, lookupTopic=lookup))
        if len(data) - 4 == size:
            return data
    raise AssertionError(f"no lookup announces {size} bytes")


LOOKUP, PING, SUCCESS = frame_of(Kind.LOOKUP), frame_of(Kind.PING), frame_of(Kind.SUCCESS)


class Fed:
    """An intake, with the bytes fed and the frames handed out."""

    def __init__(self, *, parks: bool = True, limit: int = 1_000_000) -> None:
        self.totals = FlowTotals(ManualClock())
        self.decoder = FrameDecoder(limit)
        self.intake = FrameIntake(self.decoder, parks=parks, totals=self.totals)

    def feed(self, *data: bytes) -> Fed:
        for chunk in data:
            self.decoder.feed(chunk)
        return self

    def taken(self, *, gate_open: bool) -> list[str]:
        """Take all frames handled now; return the names of their types."""
        names = []
        while (frame := self.intake.next_frame(gate_open=gate_open)) is not None:
            names.append(type_name(frame.command().type))
        return names

    @property
    def parked(self) -> tuple[int, int]:
        """Return the process's count."""
        return self.totals.parked_frames, self.totals.parked_bytes


# -- overtaking -----------------------------------------------------------------------------------


def test_the_overtaking_and_overtaken_command_types_are_as_documented() -> None:
    assert sorted(map(type_name, OVERTAKES)) == sorted(OVERTAKE)
    assert sorted(map(type_name, OVERTAKEN)) == sorted(ARE_OVERTAKEN)


@pytest.mark.parametrize("kind", TYPES, ids=type_name)
def test_behind_a_parked_lookup_only_overtaking_commands_are_handled(kind: int) -> None:
    fed = Fed().feed(LOOKUP, frame_of(kind))
    taken = fed.taken(gate_open=False)
    assert taken == ([type_name(kind)] if type_name(kind) in OVERTAKE else [])


@pytest.mark.parametrize("kind", TYPES, ids=type_name)
def test_a_ping_overtakes_parked_queries_only(kind: int) -> None:
    fed = Fed().feed(frame_of(kind), PING)
    taken = fed.taken(gate_open=False)
    own = [type_name(kind)] if type_name(kind) in OVERTAKE else []
    stops = type_name(kind) not in OVERTAKE + ARE_OVERTAKEN
    assert taken == ([] if stops else [*own, "PING"])


def test_the_close_of_a_watch_does_not_overtake_its_start() -> None:
    fed = Fed().feed(frame_of(Kind.WATCH_TOPIC_LIST), frame_of(Kind.WATCH_TOPIC_LIST_CLOSE), PING)
    assert fed.taken(gate_open=False) == []
    assert not fed.intake.wants_more
    assert fed.taken(gate_open=True) == ["WATCH_TOPIC_LIST", "WATCH_TOPIC_LIST_CLOSE", "PING"]


def test_a_frame_of_unrecognized_type_is_not_overtaken() -> None:
    # Another field stands before the type
    body = (
        b"\x92\x01\x00" + pb.BaseCommand(type=Kind.PING, ping=pb.CommandPing()).SerializeToString()
    )
    odd = (len(body) + 4).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body
    fed = Fed().feed(odd, PING)
    assert fed.taken(gate_open=False) == []
    assert not fed.intake.wants_more
    assert fed.taken(gate_open=True) == ["PING", "PING"]


def test_frames_behind_a_frame_that_cannot_be_overtaken_stay_undecoded() -> None:
    fed = Fed().feed(LOOKUP, SUCCESS, PING, LOOKUP)
    fed.taken(gate_open=False)
    assert len(fed.intake) == 2
    assert fed.intake.frames_seen == 2
    assert fed.decoder.buffered_bytes == len(PING + LOOKUP)


def test_after_a_frame_that_cannot_be_overtaken_is_handled_frames_are_parked_again() -> None:
    fed = Fed().feed(LOOKUP, SUCCESS)
    fed.taken(gate_open=False)
    fed.taken(gate_open=True)
    fed.feed(LOOKUP, PING)
    assert fed.taken(gate_open=False) == ["PING"]


def test_a_frame_that_cannot_be_overtaken_stops_reading_until_handled() -> None:
    fed = Fed().feed(LOOKUP, LOOKUP, SUCCESS, PING)
    fed.taken(gate_open=False)
    # When the gate was open for two frames only
    for _ in range(2):
        fed.intake.next_frame(gate_open=True)
    assert fed.taken(gate_open=False) == []
    assert not fed.intake.wants_more
    fed.intake.next_frame(gate_open=True)
    assert fed.intake.wants_more
    assert fed.taken(gate_open=False) == ["PING"]


# -- as shipped -----------------------------------------------------------------------------------


def test_in_profile_pulsar_a_closed_gate_delivers_no_frames_and_stops_reading() -> None:
    fed = Fed(parks=False).feed(PING, LOOKUP)
    assert fed.taken(gate_open=False) == []
    assert not fed.intake.wants_more
    assert (len(fed.intake), fed.decoder.buffered_bytes) == (0, len(PING + LOOKUP))
    assert fed.taken(gate_open=True) == ["PING", "LOOKUP"]


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lookups", "pings"), [(255, ["PING"]), (256, [])])
def test_the_number_of_parked_frames_is_bounded_and_stops_overtaking(
    lookups: int, pings: list[str]
) -> None:
    fed = Fed().feed(LOOKUP * lookups, PING)
    assert fed.taken(gate_open=False) == pings
    assert (len(fed.intake), MAX_PARKED_FRAMES) == (lookups, 256)
    assert fed.intake.wants_more is bool(pings)


def test_a_burst_parks_at_most_the_maximum_number_of_frames() -> None:
    fed = Fed().feed(LOOKUP * 1_000)
    fed.taken(gate_open=False)
    assert len(fed.intake) == MAX_PARKED_FRAMES
    assert fed.taken(gate_open=True) == ["LOOKUP"] * 1_000


@pytest.mark.parametrize(("more", "pings"), [(-1, ["PING"]), (0, [])])
def test_the_number_of_parked_bytes_is_bounded(more: int, pings: list[str]) -> None:
    fed = Fed().feed(sized_lookup(40_000), sized_lookup(MAX_PARKED_BYTES - 40_000 + more), PING)
    assert fed.taken(gate_open=False) == pings
    assert fed.intake.wants_more is bool(pings)
    assert MAX_PARKED_BYTES == 65_536


@pytest.mark.parametrize(("more", "wants"), [(-1, True), (0, False)])
def test_a_partly_received_frame_counts_towards_the_bound_of_parked_bytes(
    more: int, wants: bool
) -> None:
    fed = Fed().feed(sized_lookup(40_000))
    fed.taken(gate_open=False)
    fed.feed(sized_lookup(60_000)[: MAX_PARKED_BYTES - 40_000 + more + 4])
    assert fed.taken(gate_open=False) == []
    assert fed.intake.wants_more is wants


def test_a_frame_above_the_bound_is_handled_in_its_turn() -> None:
    fed = Fed().feed(sized_lookup(200_000), PING)
    assert fed.taken(gate_open=False) == []
    assert (len(fed.intake), fed.intake.wants_more) == (1, False)
    assert fed.taken(gate_open=True) == ["LOOKUP", "PING"]


@pytest.mark.parametrize("kind", [Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER], ids=type_name)
def test_the_number_of_answered_overtaking_frames_per_pause_is_bounded(kind: int) -> None:
    fed = Fed().feed(frame_of(kind) * 300, PING)
    assert fed.taken(gate_open=False) == [type_name(kind)] * MAX_ANSWERED_OVERTAKERS
    assert not fed.intake.wants_more
    fed.taken(gate_open=True)
    fed.feed(frame_of(kind), PING)
    assert fed.taken(gate_open=False) == [type_name(kind), "PING"]


@pytest.mark.parametrize("kind", [Kind.PING, Kind.PONG, Kind.ACK, Kind.FLOW], ids=type_name)
def test_overtaking_frames_without_an_answer_are_not_bounded(kind: int) -> None:
    fed = Fed().feed(LOOKUP, frame_of(kind) * 1_000)
    assert fed.taken(gate_open=False) == [type_name(kind)] * 1_000
    assert fed.intake.wants_more


def test_a_frame_above_the_limit_is_an_error_with_an_open_or_closed_gate() -> None:
    too_long = (10**7).to_bytes(4, "big")
    for gate_open in (True, False):
        with pytest.raises(FrameTooLargeError):
            Fed().feed(too_long).intake.next_frame(gate_open=gate_open)


# -- order ----------------------------------------------------------------------------------------


def test_parked_frames_are_handled_before_later_frames() -> None:
    fed = Fed().feed(LOOKUP, frame_of(Kind.PARTITIONED_METADATA))
    fed.taken(gate_open=False)
    fed.feed(PING, LOOKUP)
    assert fed.taken(gate_open=True) == ["LOOKUP", "PARTITIONED_METADATA", "PING", "LOOKUP"]


def test_a_frame_received_in_pieces_is_handled_when_complete() -> None:
    fed = Fed()
    for byte in LOOKUP + PING[:-1]:
        assert fed.feed(bytes([byte])).taken(gate_open=False) == []
    assert not fed.intake.idle
    assert fed.feed(PING[-1:]).taken(gate_open=False) == ["PING"]


def test_an_intake_is_idle_when_no_frame_and_no_part_of_a_frame_waits() -> None:
    fed = Fed()
    assert fed.intake.idle
    fed.feed(LOOKUP)
    fed.taken(gate_open=False)
    assert not fed.intake.idle
    fed.taken(gate_open=True)
    assert fed.intake.idle
    fed.feed(LOOKUP[:1])
    assert not fed.intake.idle


def test_frames_are_counted_once_when_decoded() -> None:
    fed = Fed().feed(LOOKUP, PING, LOOKUP)
    fed.taken(gate_open=False)
    assert fed.intake.frames_seen == 3
    fed.taken(gate_open=True)
    assert fed.intake.frames_seen == 3


# -- totals ---------------------------------------------------------------------------------------


def test_parked_frames_of_all_connections_are_counted_until_handled() -> None:
    fed = Fed().feed(LOOKUP, LOOKUP, PING)
    other = FrameIntake(decoder := FrameDecoder(), parks=True, totals=fed.totals)
    decoder.feed(LOOKUP)
    fed.taken(gate_open=False)
    other.next_frame(gate_open=False)
    size = len(LOOKUP) - 4
    assert fed.parked == (3, 3 * size)
    fed.taken(gate_open=True)
    assert fed.parked == (1, size)


def test_discarded_frames_are_no_longer_counted_and_never_handled() -> None:
    fed = Fed().feed(LOOKUP, LOOKUP)
    fed.taken(gate_open=False)
    fed.intake.discard()
    fed.intake.discard()
    assert (fed.parked, len(fed.intake), fed.intake.parked_bytes) == ((0, 0), 0, 0)
    assert fed.taken(gate_open=True) == []


def test_frames_are_parked_without_totals() -> None:
    intake = FrameIntake(decoder := FrameDecoder(), parks=True)
    decoder.feed(LOOKUP)
    intake.next_frame(gate_open=False)
    assert len(intake) == 1
    assert intake.next_frame(gate_open=True) is not None


# -- arbitrary input ------------------------------------------------------------------------------

KINDS = st.sampled_from(TYPES)
MOVES = st.lists(st.one_of(st.integers(1, 60), st.booleans()), max_size=60)


def numbered(kinds: list[int]) -> list[bytes]:
    """Return a frame of each kind, ending with a number ignored by decoders."""
    frames = []
    for number, kind in enumerate(kinds):
        body = frame_of(kind)[4:] + number.to_bytes(4, "big")
        frames.append(len(body).to_bytes(4, "big") + body)
    return frames


@settings(max_examples=many(300), deadline=None)
@given(st.lists(KINDS, max_size=30), MOVES)
def test_all_frames_are_handled_once_and_in_order_except_for_overtaking_frames(
    kinds, moves
) -> None:
    stream, fed, order = b"".join(numbered(kinds)), Fed(), []

    def takes(*, gate_open: bool, most: int = 3) -> None:
        for _ in range(most):
            frame: Frame | None = fed.intake.next_frame(gate_open=gate_open)
            if frame is None:
                return
            order.append(int.from_bytes(frame.body()[-4:], "big"))
            assert gate_open or kinds[order[-1]] in OVERTAKES

    # When bytes arrive, and the gate is open or closed
    for move in moves:
        if isinstance(move, bool):
            takes(gate_open=move)
        else:
            fed.feed(stream[:move])
            stream = stream[move:]
        assert fed.parked == (len(fed.intake), fed.intake.parked_bytes)
    fed.feed(stream)
    takes(gate_open=True, most=len(kinds) + 1)
    assert sorted(order) == list(range(len(kinds)))
    for place, number in enumerate(order):
        for overtaken in (one for one in order[place + 1 :] if one < number):
            assert kinds[number] in OVERTAKES
            assert kinds[overtaken] in OVERTAKEN
    assert fed.parked == (0, 0)
    assert fed.intake.idle


def test_a_parked_frame_keeps_no_bytes_of_frames_from_the_same_chunk() -> None:
    # Given a lookup in a chunk of many pings, which overtake and are gone
    fed = Fed().feed(LOOKUP + PING * 1_000)
    fed.taken(gate_open=False)
    frame = fed.intake.next_frame(gate_open=True)
    assert frame is not None
    assert sum(len(part.obj) for part in frame.parts) == frame.total_size
