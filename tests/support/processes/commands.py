"""Every command of the protocol by type, and a socketless connection."""

import struct

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

import proto.PulsarApi_pb2 as pb
from proto.transport.connection import Connection
from tests.support.clocks.settle import settle
from tests.support.peers.frames import frame
from tests.support.peers.memory_transport import MemoryTransport

TYPES: list[int] = sorted(pb.BaseCommand.Type.values())
_TEXT = "x"


def type_name(kind: int) -> str:
    """Return a type's name, for test ids."""
    return str(pb.BaseCommand.Type.Name(kind))


def complete_command(kind: int, body_kind: int | None = None) -> pb.BaseCommand:
    """Return a command of a type with every required field set.

    Args:
        kind: The type.
        body_kind: The type of the carried body; default ``kind``.
    """
    command = pb.BaseCommand(type=kind)
    # In Pulsar's protocol a body's field number equals its type's number.
    field = pb.BaseCommand.DESCRIPTOR.fields_by_number[kind if body_kind is None else body_kind]
    _fill(getattr(command, field.name))
    getattr(command, field.name).SetInParent()
    return command


def _fill(message: Message) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.is_required:
            if field.message_type is not None:
                _fill(getattr(message, field.name))
                getattr(message, field.name).SetInParent()
            else:
                setattr(message, field.name, _value(field))


def _value(field: FieldDescriptor) -> object:
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    if field.type == field.TYPE_STRING:
        return _TEXT
    return b"" if field.type == field.TYPE_BYTES else 1


def split_commands(data: bytes) -> list[pb.BaseCommand]:
    """Return the commands of whole frames."""
    found = []
    while data:
        total, size = struct.unpack_from(">II", data)
        found.append(pb.BaseCommand.FromString(data[8 : 8 + size]))
        data = data[4 + total :]
    return found


class Wire:
    """A socketless connection's peer that reads immediately."""

    def __init__(self, cnx: Connection) -> None:
        self.cnx = cnx
        self.transport = MemoryTransport(cnx, reads_at_once=True).connect()

    def say(self, command: pb.BaseCommand) -> None:
        self.transport.peer_sends(frame(command))

    @property
    def closed(self) -> bool:
        """True if the connection has ended, or is about to."""
        return self.transport.is_closing()

    def answers(self) -> list[pb.BaseCommand]:
        data = bytes(self.transport.received)
        self.transport.received.clear()
        return split_commands(data)


async def outcome(cnx: Connection, state: object, command: pb.BaseCommand) -> str:
    """Send a command in a connection state; return ``closed``, or the answers' types."""
    wire = Wire(cnx)
    cnx.state = state
    wire.say(command)
    await settle()
    answers = [type_name(answer.type) for answer in wire.answers()]
    closed = wire.closed
    wire.transport.breaks()
    return " ".join([*answers, "closed"] if closed else answers)
