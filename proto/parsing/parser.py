"""Parsers of commands: a strict parser, and a parser as lenient as a real broker's."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.command_bounds import ACK_BYTES
from proto.parsing.unparsed import check_bodies, check_large_command, mended

Parser = Callable[[bytes], pb.BaseCommand]
MAX_REQUEST_PROPERTIES = 10_000
"""Most properties of a topic-list request; a client that sends more is disconnected."""
MAX_SCANNED_BYTES = 16_384
"""Largest command in bytes whose unknown fields are scanned; each of them takes about 1 us."""
_GROUP = 3


def parse_command(data: bytes) -> pb.BaseCommand:
    """Parse a protobuf command, rejecting text that is not UTF-8.

    Raises:
        RemoteProtocolError: The bytes are not protobuf, or the command has an unknown type, lacks a
            required field, or has text that is not UTF-8.
    """
    command = pb.BaseCommand()
    try:
        command.ParseFromString(data)
    except DecodeError as error:
        reason = str(error).rpartition(": ")[2]
        raise RemoteProtocolError(f"a frame does not hold a protobuf command: {reason}") from None
    if not command.IsInitialized():
        raise RemoteProtocolError("a command has an unknown type or lacks a required field")
    properties = len(command.getTopicsOfNamespace.properties)
    if properties > MAX_REQUEST_PROPERTIES:
        # A frame can contain 800,000 properties, which would block the loop for two seconds.
        raise RemoteProtocolError(
            f"a listing request has {properties} properties, more than {MAX_REQUEST_PROPERTIES}"
        )
    return command


def parse_from_client(data: bytes) -> pb.BaseCommand:
    """Parse a client's command, rejecting commands that would take long to parse.

    Raises:
        RemoteProtocolError: As parse_command; also for a large command with too many fields, or
            whose size is not due to its schema.
    """
    if len(data) > ACK_BYTES:
        check_large_command(data)
    return parse_command(data)


def parse_as_pulsar(data: bytes) -> pb.BaseCommand:
    """Parse a command as leniently as a real broker, which repairs text that is not UTF-8.

    Raises:
        RemoteProtocolError: As parse_command otherwise; also for a group, unknown to upstream.
    """
    try:
        command = parse_command(data)
    except RemoteProtocolError:
        whole = mended(data, pb.BaseCommand.DESCRIPTOR)
        if whole == data:
            raise
        data = whole
        command = parse_command(data)
    if len(data) > MAX_SCANNED_BYTES:
        return command
    if any(field.wire_type == _GROUP for field in UnknownFieldSet(command)):  # type: ignore[attr-defined]
        raise RemoteProtocolError(
            "a command has a field of protobuf's wire type group, which no command uses"
        )
    if command.ByteSize() < len(data):
        check_bodies(data)  # A repeated field, which no encoder writes.
    return command
