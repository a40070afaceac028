"""Parsers of commands: the strict one, and one that reads what a real broker reads."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.broken_text import MAX_MENDED_BYTES, mended
from proto.parsing.command_bounds import ACK_BYTES
from proto.parsing.unparsed import check_bodies, check_large_command

Parser = Callable[[bytes], pb.BaseCommand]
MAX_REQUEST_PROPERTIES = 10_000
"""Properties that a listing request may have on the wire; a client with more is cut off."""
_GROUP = 3


def parse_command(data: bytes) -> pb.BaseCommand:
    """Parse one command.

    Raises:
        RemoteProtocolError: Not protobuf, an unknown type, a required field is missing, or a
            text is not UTF-8.
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
        # A frame has room for 800,000 of them, which would take the loop for two seconds.
        raise RemoteProtocolError(f"a listing request with {properties} properties")
    return command


def parse_from_client(data: bytes) -> pb.BaseCommand:
    """Parse one command of a client, unless it would take long.

    Raises:
        RemoteProtocolError: As parse_command; also for a large command of too many fields, or one
            that is large otherwise than by its schema.
    """
    if len(data) > ACK_BYTES:
        check_large_command(data)
    return parse_command(data)


def parse_as_pulsar(data: bytes) -> pb.BaseCommand:
    """Parse one command as a real broker does, which mends text that is not UTF-8.

    Raises:
        RemoteProtocolError: As parse_command otherwise; also for a group, which is unknown there.
    """
    try:
        command = parse_command(data)
    except RemoteProtocolError:
        whole = mended(data, pb.BaseCommand.DESCRIPTOR)
        if whole == data:
            raise
        data = whole
        command = parse_command(data)
    if len(data) > MAX_MENDED_BYTES:
        return command  # What follows makes an object for each field.
    if any(field.wire_type == _GROUP for field in UnknownFieldSet(command)):  # type: ignore[attr-defined]
        raise RemoteProtocolError("a command has a group, which no command has")
    if command.ByteSize() < len(data):
        check_bodies(data)  # Something comes twice, as from no encoder.
    return command
