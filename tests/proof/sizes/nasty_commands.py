"""For each type of command, the most expensive contents to parse and handle in a given size."""

from collections.abc import Iterator
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

import proto.PulsarApi_pb2 as pb
from proto.parsing.varint import encode_varint

Type = pb.BaseCommand
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_UNKNOWN_FIELD = 1_999
_NESTED = 90
TEXTS = {
    "letters": "x",
    "two-byte letters": "ä",
    "four-byte letters": "\U0001f600",
    "controls": "\x01",
    "slashes": "/",
    "digits": "0",
    "partitions": "-partition-0",
    "brackets": "(",
    "open groups": "(x",
    "alternatives": "x|",
    "repeats": "x{99}",
    "stars": "(x*)*",
    "classes": r"\pL",
    "quotes": r"\Q\E",
    "lookaheads": "(?!x)",
}
"""The characters of texts."""
PATTERNS = (
    r"\pL{99}",
    r"[\pL\pN]{99}",
    r"(\pL|\d){60}",
    r"(?i)\pL{90}",
    ".{1000}",
    "(.{30}){30}",
    "(x{9}){9}",
    "(x?){50}x{50}",
    "x|" * 20,
    "(.*)(.*)(.*)(.*)(.*)q",
    "(?!x)(?:a{1000}){1000}",
    "((a){999}){999}",
    "(?=x)(((a|b){99}){99}){99}",
    "(?=x)a{2147483647}",
    "(?!x)((){9}){410}",
    "(?!x)(?:[a-z0-9&&[^b]]){700}",
    r"(?=x)\p{IsLatin}\p{InGreek}\p{IsHan}\p{IsThai}",
    "(?!x)[abcdefghijklmnopqrstuvwxyz0123456789]{9}",
)
"""Patterns as long as subscriptionPatternMaxLength allows, or shorter."""
_TEXT_STARTS = ("", "persistent://", "persistent://a/b/", "a/b/")


class Nasty(NamedTuple):
    """A command: its content's title, and its bytes."""

    name: str
    kind: int
    command: bytes


def nasty_commands(kind: int, size_bytes: int) -> Iterator[Nasty]:
    """Yield commands of a type that fill just about ``size_bytes``."""
    field = pb.BaseCommand.DESCRIPTOR.fields_by_number[kind]
    start = b"\x08" + encode_varint(kind)
    room = size_bytes - 32
    for name, unit in _UNKNOWN.items():
        yield Nasty(f"unknown {name}", kind, start + _filled(b"", unit, room))
    if field.message_type is None:
        return
    for name, body in _bodies(field.message_type, room):
        yield Nasty(name, kind, start + _delimited(kind, body))


def _bodies(message: Descriptor, room: int) -> Iterator[tuple[str, bytes]]:
    """Yield bodies: all required fields, and one field that fills the remaining size."""
    required = _required(message)
    room -= len(required)
    for name, unit in _UNKNOWN.items():
        yield f"unknown {name} in the body", _filled(required, unit, room)
    for field in message.fields:
        for pattern in PATTERNS if field.name == "topics_pattern" else ():
            yield f"the pattern {pattern}", required + _delimited(field.number, pattern.encode())
        if field.type == field.TYPE_STRING and not field.is_repeated:
            for text, one in TEXTS.items():
                for begin in _TEXT_STARTS:
                    size = room - len(begin)
                    whole = begin.encode() + one.encode() * (size // len(one.encode()))
                    yield (
                        f"{field.name} of {begin}{text}",
                        required + _delimited(field.number, whole),
                    )
        else:
            for name, unit in _units(field):
                yield f"{field.name}: {name}", _filled(required, unit, room)


def _units(field: FieldDescriptor) -> Iterator[tuple[str, bytes]]:
    """Yield the small values for repetitions of a field."""
    if field.message_type is None and field.type not in (field.TYPE_STRING, field.TYPE_BYTES):
        yield "numbers", encode_varint(field.number << 3) + b"\x01"
        return
    yield "empty", _delimited(field.number, b"")
    if field.message_type is None:
        yield "letters", _delimited(field.number, "ä".encode())
        return
    yield "required only", _delimited(field.number, _required(field.message_type))
    for part in field.message_type.fields:
        for name, unit in _parts(part):
            body = _required(field.message_type) + unit
            yield f"with {part.name} {name}", _delimited(field.number, body)
    nested = _nested(field.message_type)
    if nested:
        yield "nested", _delimited(field.number, nested)


def _parts(field: FieldDescriptor) -> Iterator[tuple[str, bytes]]:
    if field.message_type is not None:
        yield "empty", _delimited(field.number, b"")
    elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        yield "letters", _delimited(field.number, "ä".encode())


def _nested(message: Descriptor) -> bytes:
    """Return a message nested to the parsers' limit; empty if the type is not recursive."""
    within = [field for field in message.fields if field.message_type is message]
    if not within:
        return b""
    body = _required(message)
    for _ in range(_NESTED):
        body = _required(message) + _delimited(within[0].number, body)
    return body


def _required(message: Descriptor) -> bytes:
    out = b""
    for field in message.fields:
        if field.is_required:
            out += _smallest(field)
    return out


def _smallest(field: FieldDescriptor) -> bytes:
    if field.message_type is not None:
        return _delimited(field.number, _required(field.message_type))
    if field.type == field.TYPE_STRING:
        return _delimited(field.number, b"a/b")
    if field.type == field.TYPE_BYTES:
        return _delimited(field.number, b"")
    return encode_varint(field.number << 3) + b"\x01"


def _delimited(number: int, body: bytes) -> bytes:
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(body)) + body


def _filled(start: bytes, unit: bytes, room: int) -> bytes:
    return start + unit * (room // len(unit))


_UNKNOWN = {
    "numbers": encode_varint(_UNKNOWN_FIELD << 3 | _VARINT) + b"\x01",
    "texts": encode_varint(_UNKNOWN_FIELD << 3 | _BYTES) + b"\x00",
    "fixed numbers": encode_varint(_UNKNOWN_FIELD << 3 | _FIXED32) + bytes(4),
}
