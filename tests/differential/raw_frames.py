"""Malformed frames: wrong lengths, missing or mismatched bodies, broken fields."""

import struct
from collections.abc import Callable
from random import Random

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import NAMESPACE
from tests.support.peers.frames import frame, ping
from tests.support.peers.raw_peer import lookup_command, topics_command

_TYPES = sorted(pb.BaseCommand.Type.values())
_ANSWERED = (
    pb.BaseCommand.PING,
    pb.BaseCommand.PONG,
    pb.BaseCommand.CONNECT,
    pb.BaseCommand.LOOKUP,
    pb.BaseCommand.PARTITIONED_METADATA,
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE,
    pb.BaseCommand.WATCH_TOPIC_LIST,
    pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE,
)
_TOPIC = f"persistent://{NAMESPACE}/alpha".encode()


def raw_frame(random: Random) -> tuple[str, bytes]:
    """Return a word for a frame's defect, and the frame."""
    make = random.choice(_MAKERS)
    return make.__name__.strip("_"), make(random)


def framed(command: bytes, total: int | None = None, size: int | None = None) -> bytes:
    """Return bytes with both length fields, possibly wrong."""
    size = len(command) if size is None else size
    total = len(command) + 4 if total is None else total
    return struct.pack(">II", total & 0xFFFFFFFF, size & 0xFFFFFFFF) + command


def varint(number: int) -> bytes:
    """Return a number in protobuf's encoding."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def body_of(field: int, body: bytes) -> bytes:
    """Return a message as a field of another message."""
    return varint(field << 3 | 2) + varint(len(body)) + body


def typed(number: int, rest: bytes = b"") -> bytes:
    """Return a command of a type."""
    return b"\x08" + varint(number) + rest


def _lengths(random: Random) -> bytes:
    command = ping().SerializeToString()
    return random.choice(
        (
            framed(command, total=0),
            framed(command, total=1),
            framed(command, total=3),
            framed(command, total=4),
            framed(command, total=4, size=0),
            framed(b"", total=4, size=0),
            framed(b"", total=4, size=1),
            framed(command, size=len(command) + 1),
            framed(command, size=0),
            framed(command, size=len(command) - 1),
            framed(command, size=-1),
            framed(command, size=2**31),
            framed(command, total=-1),
            framed(command, total=-(2**31)),
            framed(command, total=5_253_116),
            framed(command, total=5_253_117),
            framed(command, total=2**30),
            framed(command + b"tail", size=len(command)),
            framed(command)[:-1],
            framed(command)[:5],
            b"\x00\x00",
            b"\x00" * 4,
            b"\x00" * 8,
            b"\xff" * 16,
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        )
    )


def _no_body(random: Random) -> bytes:
    return framed(typed(random.choice(random.choice((_TYPES, _ANSWERED)))))


def _unknown_type(random: Random) -> bytes:
    number = random.choice(
        (0, 1, 22, 24, 69, 70, 71, 75, 99, 127, 128, 1000, 2**31 - 1, 2**31, 2**64 - 1)
    )
    return framed(typed(number, random.choice((b"", body_of(18, b"")))))


def _no_type(random: Random) -> bytes:
    rest = random.choice((b"", body_of(18, b""), body_of(23, b"\x0a\x01x\x10\x01"), b"\x10\x01"))
    return framed(rest)


def _other_body(random: Random) -> bytes:
    kind, other = random.choice(_ANSWERED), random.choice(_ANSWERED)
    return framed(typed(kind, body_of(other, b"")))


def _fields_missing(random: Random) -> bytes:
    kind = random.choice([one for one in _ANSWERED if one not in (18, 19)])
    body = random.choice((b"", b"\x08\x01", b"\x0a\x01x", b"\x10\x01", b"\x12\x01x"))
    return framed(typed(kind, body_of(kind, body)))


def _unknown_fields(random: Random) -> bytes:
    known = random.choice(
        (ping(), lookup_command(7, _TOPIC.decode()), topics_command(7, NAMESPACE))
    ).SerializeToString()
    extra = random.choice(
        (
            b"\xf8\x3f\x01",
            body_of(1000, b"anything"),
            b"\xfd\x3f\x01\x02\x03\x04",
            b"\xf9\x3f" + bytes(8),
            varint(1000 << 3 | 3) + varint(1000 << 3 | 4),
        )
    )
    return framed(known + extra) if random.random() < 0.7 else framed(extra + known)


def _broken_protobuf(random: Random) -> bytes:
    known = lookup_command(7, _TOPIC.decode()).SerializeToString()
    return framed(
        random.choice(
            (
                known[:-1],
                known[: random.randrange(1, len(known))],
                known + b"\x0a",
                known + b"\xff" * 11,
                b"\x08",
                b"\xff" * 12,
                b"\x00\x00",
                b"\x0f\x01",
                typed(23, varint(23 << 3) + b"\x01"),
                typed(18, varint(18 << 3) + b"\x01"),
                b"\x0d\x12\x00\x00\x00" + body_of(18, b""),
                typed(18, varint(18 << 3 | 2) + varint(2**31)),
                typed(18, varint(18 << 3 | 2) + varint(5)),
                typed(18, varint(18 << 3 | 3)),
                typed(18, varint(18 << 3 | 6)),
            )
        )
    )


def _broken_text(random: Random) -> bytes:
    text = random.choice(
        (b"\xff\xfe", b"persistent://public/\xc3\x28/x", b"\xed\xa0\x80", _TOPIC + b"\xf0\x9f")
    )
    number = b"\x10\x07"
    topic = body_of(1, text)
    return framed(
        random.choice(
            (
                typed(23, body_of(23, topic + number)),
                typed(21, body_of(21, topic + number)),
                typed(32, body_of(32, b"\x08\x07" + body_of(2, text))),
                typed(
                    32, body_of(32, b"\x08\x07" + body_of(2, NAMESPACE.encode()) + body_of(4, text))
                ),
                typed(
                    32, body_of(32, b"\x08\x07" + body_of(2, NAMESPACE.encode()) + body_of(5, text))
                ),
            )
        )
    )


def _twice(random: Random) -> bytes:
    lookup = lookup_command(7, _TOPIC.decode()).SerializeToString()
    return framed(
        random.choice(
            (
                lookup + lookup_command(8, _TOPIC.decode() + "b").SerializeToString(),
                typed(18, typed(18, body_of(18, b""))),
                typed(19, typed(18, body_of(18, b""))),
                typed(18, body_of(18, b"") + body_of(18, b"")),
                lookup + typed(18, body_of(18, b"")),
                typed(
                    23,
                    body_of(23, body_of(1, b"x")) + body_of(23, body_of(1, _TOPIC) + b"\x10\x09"),
                ),
            )
        )
    )


def _joined(random: Random) -> bytes:
    frames = [
        frame(ping()),
        frame(lookup_command(7, _TOPIC.decode())),
        frame(topics_command(8, NAMESPACE)),
    ]
    return random.choice(frames[:1] * 2 + frames) + frame(ping())


def _odd_values(random: Random) -> bytes:
    namespace = body_of(2, NAMESPACE.encode())
    mode = random.choice((3, 4, 127, 2**31, 2**64 - 1))
    return framed(
        random.choice(
            (
                typed(32, body_of(32, b"\x08\x07" + namespace + b"\x18" + varint(mode))),
                typed(32, body_of(32, b"\x08" + varint(2**64 - 1) + namespace)),
                typed(23, body_of(23, body_of(1, _TOPIC) + b"\x10" + varint(2**64 - 1))),
                typed(23, body_of(23, body_of(1, _TOPIC) + b"\x10\x07\x18\x05")),
                typed(32, body_of(32, b"\x08\x07" + namespace + b"\x1a\x01\x01")),
                typed(32, body_of(32, b"\x08\x80\x00" + namespace)),
                typed(18, body_of(18, b"\x08\x01anything"[:2])),
                typed(18, body_of(18, b"\xff")),
                typed(18, body_of(18, b"\x0a\x05ab")),
                typed(32, body_of(32, b"\x08\x07" + namespace + body_of(6, b""))),
                typed(32, body_of(32, b"\x08\x07" + namespace + body_of(6, body_of(1, b"k")))),
            )
        )
    )


def _from_servers(random: Random) -> bytes:
    commands = (
        pb.BaseCommand(
            type=pb.BaseCommand.CONNECTED, connected=pb.CommandConnected(server_version="x")
        ),
        pb.BaseCommand(type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=1)),
        pb.BaseCommand(
            type=pb.BaseCommand.ERROR,
            error=pb.CommandError(request_id=1, error=pb.UnknownError, message="x"),
        ),
        pb.BaseCommand(
            type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
            getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(request_id=1),
        ),
        pb.BaseCommand(
            type=pb.BaseCommand.WATCH_TOPIC_UPDATE,
            watchTopicUpdate=pb.CommandWatchTopicUpdate(watcher_id=1, topics_hash="00000000"),
        ),
        pb.BaseCommand(
            type=pb.BaseCommand.AUTH_RESPONSE,
            authResponse=pb.CommandAuthResponse(client_version="x"),
        ),
    )
    return frame(random.choice(commands))


_MAKERS: tuple[Callable[[Random], bytes], ...] = (
    _lengths,
    _no_body,
    _unknown_type,
    _no_type,
    _other_body,
    _fields_missing,
    _unknown_fields,
    _broken_protobuf,
    _broken_text,
    _twice,
    _joined,
    _odd_values,
    _from_servers,
)
