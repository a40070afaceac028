"""Bounds of commands by their type; the payload of SEND does not count.

A command is parsed in one go, and the worst that fits into a frame of 5 MB holds the event loop for
a fifth of a second. What the clients of the field send is far smaller. Two kinds are larger than
the others: an ACK, and what carries a schema, which is parsed in a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.errors import CommandTooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_Type = pb.BaseCommand

COMMAND_BYTES = 65_536
"""The largest command, and before CONNECT the largest frame."""
SCHEMA_BYTES = 1_048_576
"""Bytes that a schema may add."""
ACK_BYTES = 262_144
"""Bytes of the largest ACK; the worst of this size takes 6 ms to parse.

Upstream's clients send what they gathered when it is maxAcknowledgmentGroupSize (1,000) messages or
batches: as one command, which may be 1,000 of each. A batch that is not done yet has a bit for each
of its messages, in steps of 64 at 11 bytes: with batches of 1,000 messages that is 216 KB in all.
Source: upstream PersistentAcknowledgmentsGroupingTracker.flush, Commands.newMultiMessageAck.
"""
_WITH_SCHEMA = COMMAND_BYTES + SCHEMA_BYTES
LARGER_COMMANDS: Mapping[int | None, int] = {
    _Type.ACK: ACK_BYTES,
    _Type.PRODUCER: _WITH_SCHEMA,
    _Type.SUBSCRIBE: _WITH_SCHEMA,
    _Type.GET_OR_CREATE_SCHEMA: _WITH_SCHEMA,
}
"""Types whose commands may be larger."""


def check_command_size(kind: int | None, size_bytes: int) -> None:
    """Refuse a command that is larger than any of its type should be.

    Args:
        kind: Its type; None if that is not known before it is parsed.
        size_bytes: Its size, as announced.

    Raises:
        CommandTooLargeError: It is.
    """
    limit_bytes = LARGER_COMMANDS.get(kind, COMMAND_BYTES)
    if size_bytes > limit_bytes:
        raise CommandTooLargeError(type_name(kind), size_bytes, limit_bytes)


def check_first_frame(total_size: int) -> None:
    """Refuse a large frame of a peer that has not sent CONNECT.

    Raises:
        CommandTooLargeError: It is.
    """
    if total_size > COMMAND_BYTES:
        raise CommandTooLargeError("a frame before CONNECT", total_size, COMMAND_BYTES)


def type_name(kind: int | None) -> str:
    """Return the name of a type, also of an unknown one."""
    if kind is None:
        return "a command of unknown type"
    found = _Type.Type.DESCRIPTOR.values_by_number.get(kind)
    return f"a command of type {kind}" if found is None else str(found.name)
