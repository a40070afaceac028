"""Debug log lines for the commands of a connection, in both directions.

Meant for authors of clients: each line has the direction, the peer, the command, the size of the
whole frame, and the command's fields. Long texts are cut, lists show their first value; bytes,
authentication, credentials in a URL and payloads are never shown. A connection checks the log level
once, when it is made: without debug logging it pays a single check per frame.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any, Protocol

from google.protobuf.message import DecodeError, Message

import proto.PulsarApi_pb2 as pb
from proto.excerpts import without_credentials
from proto.frames import command_type_in
from proto.parsing.command_bounds import type_name
from proto.topics_response import read_topics_head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from google.protobuf.descriptor import FieldDescriptor

    from proto.frames import Frame

    Buffer = bytes | memoryview
    Fields = Mapping[str, object]

logger = logging.getLogger(__name__)

DECODED_BYTES = 16_384
"""Most decoded bytes of a frame; of a larger frame the log names the command alone. Of frames
sent together, the frames beginning within these bytes are described."""
MAX_TEXT_CHARACTERS = 80
MAX_LINE_CHARACTERS = 600
MAX_METHOD_CHARACTERS = 20
_MAX_DEPTH = 2
_HIDDEN = frozenset({"original_auth_data"})
"""Text fields with credentials; bytes fields are never shown anyway."""
_METHODS = frozenset({"auth_method_name", "original_auth_method"})
_ASKS_BY_PROPERTIES = frozenset({"CommandGetTopicsOfNamespace", "CommandWatchScalableTopics"})
"""Commands whose properties are part of the request. Other commands' properties belong to an
application, which may have put a token there, so that only their keys are shown."""
_LENGTH = struct.Struct(">I")


class CommandRecord(Protocol):
    """Interface of an object that records the commands that a connection sends and receives."""

    def received(self, frame: Frame) -> None:
        """Record a received command."""

    def sent(self, buffers: Sequence[Buffer], size_bytes: int, *, in_a_pipe: bool) -> None:
        """Record commands that are sent together."""


def is_read() -> bool:
    """Return True if debug logging of commands is enabled."""
    return logger.isEnabledFor(logging.DEBUG)


def connection_made(peer: str, local: str, fields: Fields) -> None:
    """Log that a connection with a peer was made.

    In all functions of this module, ``fields`` are extra fields for structured logging.
    """
    logger.debug("connection between %s (peer) and %s", peer, local, extra=fields)


def connection_lost(peer: str, fields: Fields) -> None:
    """Log the end of a connection."""
    logger.debug("connection with %s ended", peer, extra=fields)


def received(peer: str, frame: Frame, fields: Fields) -> None:
    """Log a received frame."""
    logger.debug("received from %s: %s", peer, received_line(frame), extra=fields)


def sent(
    peer: str, buffers: Sequence[Buffer], size_bytes: int, fields: Fields, *, in_a_pipe: bool
) -> None:
    """Log each sent frame; of bytes that a proxy pipes through, log only their number."""
    for line in sent_lines(buffers, size_bytes, in_a_pipe=in_a_pipe):
        logger.debug("sent to %s: %s", peer, line, extra=fields)


def received_line(frame: Frame) -> str:
    """Return the log text that describes a received command."""
    return described(frame.total_size, _start(frame.parts))


def sent_lines(buffers: Sequence[Buffer], size_bytes: int, *, in_a_pipe: bool) -> Iterator[str]:
    """Yield the log text of each sent command; of bytes that a proxy pipes, only their number."""
    if in_a_pipe:
        yield f"{size_bytes} bytes of a pipe"
        return
    told_bytes = 0
    for total_size, body in _frames(_start(buffers)):
        told_bytes += _LENGTH.size + total_size
        yield described(total_size, body)
    if told_bytes < size_bytes:
        yield f"{size_bytes - told_bytes} bytes more"


def described(total_size: int, body: bytes) -> str:
    """Return a command's description for the log: its type, size and fields.

    Args:
        total_size: The value of the frame's length field.
        body: The bytes after the length field, or their beginning.
    """
    size = f"({total_size + _LENGTH.size} bytes)"
    end = _LENGTH.size + int.from_bytes(body[: _LENGTH.size])
    if end > len(body):
        found = read_topics_head(body)
        request = f" request_id={found[0]} ..." if found and len(body) < total_size else ""
        return f"{type_name(command_type_in(body))} {size}{request}"
    command = pb.BaseCommand()
    try:
        command.ParseFromString(body[_LENGTH.size : end])
    except DecodeError:
        return f"no command {size}"
    if not command.HasField("type"):
        return f"a command of unknown type {size}"
    bodies = (value for field, value in command.ListFields() if field.name != "type")
    fields = " ".join(filter(None, (_fields(one, 0) for one in bodies)))
    line = f"{pb.BaseCommand.Type.Name(command.type)} {size} {fields}"
    return _cut(line.rstrip(), MAX_LINE_CHARACTERS)


def _start(buffers: Sequence[Buffer]) -> bytes:
    start = b""
    for buffer in buffers:
        start += buffer[: DECODED_BYTES - len(start)]
        if len(start) >= DECODED_BYTES:
            break
    return start


def _frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length field and the body of each frame that begins within ``data``."""
    at = 0
    while at + _LENGTH.size < len(data):
        (total_size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        yield total_size, data[at : at + total_size]
        at += total_size


def _fields(message: Message, depth: int) -> str:
    return " ".join(
        f"{field.name}={_value(field, value, depth)}" for field, value in message.ListFields()
    )


def _value(field: FieldDescriptor, value: Any, depth: int) -> str:  # noqa: ANN401 - protobuf's
    if field.name in _HIDDEN:
        return "(hidden)"
    if isinstance(value, (str, bytes, int, float, Message)):
        return _single(field, value, depth)
    # ListFields omits empty lists.
    first = _single(field, value[0], depth)
    return f"[{len(value)}: {first}{', ...' if len(value) > 1 else ''}]"


def _single(field: FieldDescriptor, value: Any, depth: int) -> str:  # noqa: ANN401 - protobuf's
    if isinstance(value, pb.KeyValue) and not _asks_by_properties(field):
        return f"{{key={_cut(value.key, MAX_TEXT_CHARACTERS)!r} value=(hidden)}}"
    if isinstance(value, Message):
        return f"{{{_fields(value, depth + 1)}}}" if depth < _MAX_DEPTH else "{...}"
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str):
        return _text(field, value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return str(value).lower()


def _text(field: FieldDescriptor, value: str) -> str:
    if field.name in _METHODS and len(value) > MAX_METHOD_CHARACTERS:
        return f"({len(value)} characters)"  # possibly credentials in the wrong field
    shown = without_credentials(value) if "url" in field.name.lower() else value
    return repr(_cut(shown, MAX_TEXT_CHARACTERS))


def _asks_by_properties(field: FieldDescriptor) -> bool:
    command = field.containing_type
    return command is not None and command.name in _ASKS_BY_PROPERTIES


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
