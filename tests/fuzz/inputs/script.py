"""Scripts: inputs as lists of peers' actions, and mutations that keep an input a script.

An input is a byte for the initial state, then steps. A step is a byte for the action; some actions
have a length (two bytes) and a body.
"""

import random
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import google_crc32c

import proto.PulsarApi_pb2 as pb
from tests.fuzz.inputs.commands import CommandMaker

COMMAND, MESSAGE, BYTES, TIME, READS, STOPS, LEAVES, SWITCHES = range(8)
"""A command, to be framed; a command with a payload; raw bytes; time passes; the peer reads some
waiting bytes; stops or resumes reading; leaves, and a new peer connects; the next steps switch
to another peer.
"""
JOINED, HALVED, WRONG = 0x80, 0x40, 0x20
"""Flags: sent together with the next step; sent in two chunks; the message's checksum is wrong, or
another command comes from the broker behind a proxy.
"""
_HAS_BYTES = (COMMAND, MESSAGE, BYTES)
_LENGTH = struct.Struct(">H")
MOST_STEPS = 8
_BYTES_SHARE = 0.15


class Step(NamedTuple):
    what: int
    flags: int
    data: bytes


def read(data: bytes) -> tuple[int, list[Step]]:
    """Return the state and the steps of an input; every input is valid."""
    steps: list[Step] = []
    at = 1
    while at < len(data) and len(steps) < MOST_STEPS:
        what, flags = data[at] & 7, data[at] & 0xE0
        at += 1
        size = 1
        if what in _HAS_BYTES:
            size = int.from_bytes(data[at : at + 2])
            at += 2
        steps.append(Step(what, flags, data[at : at + size]))
        at += size
    return (data[0] if data else 0), steps


def written(state: int, steps: list[Step]) -> bytes:
    """Return the input of a script."""
    out = bytearray((state & 0xFF,))
    for step in steps[:MOST_STEPS]:
        out.append(step.what | step.flags)
        if step.what in _HAS_BYTES:
            out += _LENGTH.pack(min(len(step.data), 0xFFFF))
            out += step.data[:0xFFFF]
        else:
            out += step.data[:1] or b"\x00"
    return bytes(out)


def wire_bytes(step: Step) -> bytes:
    """Return the bytes that a peer sends in a step."""
    if step.what == BYTES:
        return step.data
    if step.what == COMMAND:
        return struct.pack(">II", len(step.data) + 4, len(step.data)) + step.data
    size = step.data[0] if step.data else 0
    command, tail = step.data[1 : 1 + size], step.data[1 + size :]
    checksum = google_crc32c.value(tail) ^ bool(step.flags & WRONG)
    checked = b"\x0e\x01" + struct.pack(">I", checksum) + tail
    return struct.pack(">II", 4 + len(command) + len(checked), len(command)) + command + checked


class ScriptMutator:
    """Mutates scripts.

    Args:
        likely: More frequent command types.
        has_broker: Send some commands from the broker.
    """

    def __init__(self, likely: tuple[int, ...], *, has_broker: bool = False) -> None:
        self._likely = likely
        self._has_broker = has_broker

    def mutated(
        self, data: bytes, most_bytes: int, seed: int, bytes_mutated: Callable[[bytes, int], bytes]
    ) -> bytes:
        choices = random.Random(seed)
        if choices.random() < _BYTES_SHARE:
            return bytes_mutated(data, most_bytes)
        state, steps = read(data)
        maker = CommandMaker(choices, self._likely)
        if choices.random() < 0.1:
            state = choices.randrange(256)
        for _ in range(choices.choice((1, 1, 2, 3))):
            self._change(steps, maker, choices)
        while steps and len(changed := written(state, steps)) > most_bytes:
            del steps[choices.randrange(len(steps))]
        return changed if steps else written(state, [])

    def _change(self, steps: list[Step], maker: CommandMaker, choices: random.Random) -> None:
        at, what = choices.randrange(len(steps) + 1), choices.random()
        if at == len(steps) or what < 0.35:
            steps.insert(at, self._new(maker, choices))
        elif what < 0.75 and steps[at].what in (COMMAND, MESSAGE):
            steps[at] = self._changed(steps[at], maker, choices)
        elif what < 0.8:
            steps.insert(at, choices.choice(steps))
        elif what < 0.85:
            flags = choices.choice((0, JOINED, HALVED, JOINED | HALVED, WRONG))
            steps[at] = steps[at]._replace(flags=flags)
        else:
            del steps[at]

    def _new(self, maker: CommandMaker, choices: random.Random) -> Step:
        what = choices.random()
        flags = JOINED if choices.random() < 0.2 else 0
        if what < 0.65:
            flags |= WRONG if self._has_broker and choices.random() < 0.3 else 0
            return Step(COMMAND, flags, maker.made())
        if what < 0.8:
            return Step(MESSAGE, flags, message(choices))
        kind = choices.choice((TIME, READS, STOPS, LEAVES, SWITCHES))
        return Step(kind, 0, bytes((choices.randrange(256),)))

    def _changed(self, step: Step, maker: CommandMaker, choices: random.Random) -> Step:
        if step.what == MESSAGE and choices.random() < 0.5:
            return step._replace(data=message(choices))
        if step.what == MESSAGE:
            size = step.data[0] if step.data else 0
            command = maker.changed(step.data[1 : 1 + size])[:255]
            return step._replace(data=bytes((len(command),)) + command + step.data[1 + size :])
        return step._replace(data=maker.changed(step.data))


def message(choices: random.Random) -> bytes:
    """Return a SEND, or occasionally another command, with metadata and a payload."""
    send = pb.CommandSend(
        producer_id=choices.choice((0, 1, 1, 1, 2)), sequence_id=choices.choice((0, 1, 2, 3, 9))
    )
    if choices.random() < 0.4:
        send.num_messages = choices.choice((1, 2, 3, 0, -1))
    if choices.random() < 0.2:
        send.highest_sequence_id = choices.choice((0, 1, 5, 2**63))
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send).SerializeToString()
    metadata = _metadata(choices).SerializePartialToString()
    payload = bytes(choices.randrange(256) for _ in range(choices.choice((0, 1, 5, 20))))
    tail = struct.pack(">I", len(metadata)) + metadata + payload
    return bytes((len(command),)) + command + tail


def _metadata(choices: random.Random) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    for share, set_some in _METADATA:
        if choices.random() < share:
            set_some(metadata, choices)
    return metadata


def _batch(metadata: pb.MessageMetadata, choices: random.Random) -> None:
    metadata.num_messages_in_batch = choices.choice((1, 2, 3, 0, -1, 2**31 - 1))


def _compressed(metadata: pb.MessageMetadata, choices: random.Random) -> None:
    metadata.compression = choices.choice(pb.CompressionType.values())
    metadata.uncompressed_size = choices.choice((0, 5, 2**31))


def _chunk(metadata: pb.MessageMetadata, choices: random.Random) -> None:
    metadata.chunk_id, metadata.num_chunks_from_msg = choices.choice((0, 1, -1)), 2
    metadata.uuid = "u"


def _values(**values: tuple[Any, ...]) -> Callable[[pb.MessageMetadata, random.Random], None]:
    def set_some(metadata: pb.MessageMetadata, choices: random.Random) -> None:
        for name, known in values.items():
            setattr(metadata, name, choices.choice(known))

    return set_some


_METADATA: tuple[tuple[float, Callable[[pb.MessageMetadata, random.Random], None]], ...] = (
    (0.3, _batch),
    (0.2, _values(partition_key=("k", "", "ä"))),
    (0.2, _values(deliver_at_time=(0, 1_767_225_600_100, 2**62, -1))),
    (0.2, _compressed),
    (0.1, _chunk),
    (0.1, _values(marker_type=(1, 20, -1))),
    (0.1, _values(txnid_least_bits=(1,), txnid_most_bits=(2,))),
    (0.1, _values(ordering_key=(b"o",))),
    (0.1, _values(schema_version=(b"", b"\x00" * 8, b"x"))),
    (0.05, lambda metadata, _: metadata.encryption_keys.add(key="k", value=b"v") and None),
)
"""Metadata fields, and the probability of each."""
