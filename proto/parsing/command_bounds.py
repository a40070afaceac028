"""Largest allowed size of a command for each command type, not counting the payload of SEND.

A command is parsed in one step, and the worst command that fits into a frame of 5 MB blocks the
event loop for a fifth of a second. Real clients send far smaller commands. Two kinds are larger
than the rest: ACK, and commands with a schema, which are parsed in a separate process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.errors import CommandTooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_Type = pb.BaseCommand

COMMAND_BYTES = 65_536
"""Largest command, and before CONNECT the largest frame."""
SCHEMA_BYTES = 1_048_576
"""Additional bytes for a schema."""
ACK_BYTES = 262_144
"""Bytes of the largest ACK; the worst ACK of this size takes 6 ms to parse.

Upstream's clients flush at maxAcknowledgmentGroupSize (1,000) messages or batches, in one command,
which may contain 1,000 of each. A partly acknowledged batch has a bit for each of its messages, in
steps of 64 at 11 bytes: with batches of 1,000 messages a sum of 216 KB.

Source: upstream PersistentAcknowledgmentsGroupingTracker.flush, Commands.newMultiMessageAck.
"""
_WITH_SCHEMA = COMMAND_BYTES + SCHEMA_BYTES
LARGER_COMMANDS: Mapping[int | None, int] = {
    _Type.ACK: ACK_BYTES,
    _Type.PRODUCER: _WITH_SCHEMA,
    _Type.SUBSCRIBE: _WITH_SCHEMA,
    _Type.GET_OR_CREATE_SCHEMA: _WITH_SCHEMA,
}
"""Bounds of the types with larger commands."""


def check_command_size(kind: int | None, size_bytes: int) -> None:
    """Check that a command is not larger than commands of its type may be.

    Args:
        kind: The command's type; None if it is unknown before parsing.
        size_bytes: The command's announced size.

    Raises:
        CommandTooLargeError: The size exceeds the bound.
    """
    limit_bytes = LARGER_COMMANDS.get(kind, COMMAND_BYTES)
    if size_bytes > limit_bytes:
        raise CommandTooLargeError(type_name(kind), size_bytes, limit_bytes)


def check_first_frame(total_size: int) -> None:
    """Check that a frame from a peer that has not sent CONNECT is not too large.

    Raises:
        CommandTooLargeError: The size exceeds the bound.
    """
    if total_size > COMMAND_BYTES:
        raise CommandTooLargeError("a frame before CONNECT", total_size, COMMAND_BYTES)


def type_name(kind: int | None) -> str:
    """Return the name of a command type, or a description of an unknown type."""
    if kind is None:
        return "a command of unknown type"
    found = _Type.Type.DESCRIPTOR.values_by_number.get(kind)
    return f"a command of type {kind}" if found is None else str(found.name)
