"""Frames: any chunking of a stream gives the same frames, each a command or an error.

An input: the chunking (flags, a number of cuts, their places), then the stream.
"""

from itertools import pairwise

import proto.PulsarApi_pb2 as pb
from limiter.flow.totals import FlowTotals
from proto.command_log import described
from proto.errors import RemoteProtocolError
from proto.frames import (
    LENGTH_FIELD_BYTES,
    Frame,
    FrameDecoder,
    command_size_in,
    command_type_in,
    split_body,
    verify_checksum,
)
from proto.parsing.command_bounds import check_command_size
from proto.parsing.parser import parse_as_pulsar, parse_from_client
from proto.parsing.unparsed import check_bodies
from proto.transport.frame_intake import MAX_PARKED_BYTES, FrameIntake
from tests.fuzz.inputs.frame_seeds import frame_seeds
from tests.fuzz.inputs.stream_mutation import mutated_stream
from tests.fuzz.rules import TURNS, BrokenRuleError

MAX_MESSAGE_BYTES = 20_000
MOST_CUTS = 8
MOST_TAKEN = 12
"""Frames of a stream that are parsed: more would add no coverage."""
LONG_BYTES = 1_500
"""Appended to a stream that ends in a large frame, so inputs stay short."""
FIGURES = {"frames": 0, "valid": 0}
_BOUNDED, _PARKS, _LIKE_PULSAR, _LOGGED, _EARLY, _LONG = 1, 2, 4, 8, 16, 32
_KNOWN = frozenset(pb.BaseCommand.Type.values())


class _NoClock:
    def now(self) -> float:
        return 0.0


def one_input(data: bytes) -> None:
    """Parse a stream in two chunkings and compare the frames."""
    flags, chunks, stream = _cut(data)
    with TURNS.turn():
        frames, end = _decoded(chunks, flags)
    if len(chunks) > 1:
        others, other_end = _decoded([stream], flags)
        bodies = [frame.body() for frame in frames]
        if bodies != [frame.body() for frame in others] or end != other_end:
            raise BrokenRuleError("what a stream holds depends on how it is cut")
    for frame in frames[:MOST_TAKEN]:
        with TURNS.turn():
            _take(frame, flags)
    if flags & _PARKS:
        with TURNS.turn():
            _park(chunks, len(stream))


def seeds() -> list[bytes]:
    """Return frames of every type."""
    plain = b"\x00\x00"
    return [plain + one for one in frame_seeds()]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Mutate the chunking or the stream."""
    import atheris

    head = 2 + 2 * (data[1] % (MOST_CUTS + 1)) if len(data) > 1 else 0
    if not head or seed % 4:
        return bytes(atheris.Mutate(data, most_bytes))
    return data[:head] + mutated_stream(data[head:], most_bytes - head, seed, atheris.Mutate)


def _cut(data: bytes) -> tuple[int, list[bytes], bytes]:
    if len(data) < 2:
        return 0, [], b""
    flags, cuts = data[0], data[1] % (MOST_CUTS + 1)
    head = 2 + 2 * cuts
    stream = data[head:]
    if flags & _LONG:
        stream += b"\xff" * LONG_BYTES
    places = sorted(int.from_bytes(data[2 + 2 * n : 4 + 2 * n]) for n in range(cuts))
    if places and flags & _EARLY:
        # Near the beginning, at the length fields.
        places = [place % 64 for place in places]
        places.sort()
    edges = [0, *(min(place, len(stream)) for place in places), len(stream)]
    return flags, [stream[a:b] for a, b in pairwise(edges)], stream


def _decoded(chunks: list[bytes], flags: int) -> tuple[list[Frame], object]:
    """Return a stream's frames, and the error or the bytes after the last frame."""

    def announced(size: int, head: bytes) -> bool:
        check_command_size(command_type_in(head), command_size_in(head))
        return True

    decoder = FrameDecoder(MAX_MESSAGE_BYTES, announced if flags & _BOUNDED else None)
    frames: list[Frame] = []
    try:
        for chunk in chunks:
            decoder.feed(chunk)
            while (frame := decoder.next_frame()) is not None:
                frames.append(frame)
    except RemoteProtocolError as error:
        return frames, str(error)
    return frames, (decoder.within_frame, decoder.buffered_bytes)


def _take(frame: Frame, flags: int) -> None:
    """Parse a frame as the servers do."""
    body, kind = frame.body(), frame.command_type()
    if len(body) != frame.total_size:
        raise BrokenRuleError("a frame is not as long as it says")
    FIGURES["frames"] += 1
    if len(body) >= LENGTH_FIELD_BYTES:
        frame.work_bytes()
    if flags & _LOGGED:
        described(frame.total_size, body)
    try:
        command = frame.command_bytes()
        verify_checksum(split_body(body, frame.total_size)[1])
        if kind in _KNOWN:
            check_bodies(command)
        parse = parse_as_pulsar if flags & _LIKE_PULSAR else parse_from_client
        parse(command)
        FIGURES["valid"] += 1
    except RemoteProtocolError:
        return


def _park(chunks: list[bytes], size: int) -> None:
    """Parse frames while the gate opens and closes: no frame is lost, no bytes stay counted."""
    totals = FlowTotals(_NoClock())  # type: ignore[arg-type]
    decoder = FrameDecoder(MAX_MESSAGE_BYTES)
    intake = FrameIntake(decoder, parks=True, totals=totals)
    came = 0
    try:
        for number, chunk in enumerate(chunks):
            decoder.feed(chunk)
            while (frame := intake.next_frame(gate_open=number % 2 == 1)) is not None:
                came += 4 + len(frame.body())
            if intake.parked_bytes > MAX_PARKED_BYTES + MAX_MESSAGE_BYTES + 10_240:
                raise BrokenRuleError("more is parked than may be")
        while (frame := intake.next_frame(gate_open=True)) is not None:
            came += 4 + len(frame.body())
    except RemoteProtocolError:
        came = -1
    waiting = decoder.buffered_bytes + (4 if decoder._expected is not None else 0)
    if came >= 0 and came + waiting != size:
        raise BrokenRuleError(f"{came} bytes came and {waiting} wait, of {size}")
    intake.discard()
    if totals.parked_frames or totals.parked_bytes:
        raise BrokenRuleError("frames stay counted as parked")
