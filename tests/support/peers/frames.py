"""Frames made and read by hand, so that faults in Floodgate's code cannot hide in servers."""

import struct

import google_crc32c

import proto.PulsarApi_pb2 as pb

MAGIC = b"\x0e\x01"
"""Before a checksum."""
_HEAD_BYTES = 10
"""Magic number, checksum, length of the metadata."""


def frame(command: pb.BaseCommand, behind: bytes = b"") -> bytes:
    """Return a frame, required fields unchecked: both lengths, the command, and bytes behind it."""
    body = command.SerializePartialToString()
    return struct.pack(">II", 4 + len(body) + len(behind), len(body)) + body + behind


def split_frame(body: bytes) -> tuple[pb.BaseCommand, bytes]:
    """Return a frame's command and the bytes behind it; the first length was already read."""
    end = 4 + int.from_bytes(body[:4], "big")
    return pb.BaseCommand.FromString(body[4:end]), body[end:]


def with_checksum(metadata: pb.MessageMetadata, payload: bytes, *, wrong: bool = False) -> bytes:
    """Return the bytes behind a SEND: checksum, metadata, payload."""
    head = metadata.SerializePartialToString()
    summed = struct.pack(">I", len(head)) + head + payload
    return MAGIC + struct.pack(">I", google_crc32c.value(summed) ^ wrong) + summed


def split_message(behind: bytes) -> tuple[pb.MessageMetadata, bytes]:
    """Return metadata and payload of the bytes behind a MESSAGE, with or without a checksum."""
    if not behind.startswith(MAGIC):
        behind = MAGIC + bytes(4) + behind
    end = _HEAD_BYTES + int.from_bytes(behind[6:_HEAD_BYTES], "big")
    return pb.MessageMetadata.FromString(behind[_HEAD_BYTES:end]), behind[end:]


def ping() -> pb.BaseCommand:
    return pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())


def pong() -> pb.BaseCommand:
    return pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())
