"""Entries as a broker sends them, made from what this client would send."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.messages.entry import EntrySource, read_entry
from proto.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.messages.entry import Entry
    from client.messages.message import Message
    from client.messages.outgoing import OutgoingEntry

TOPIC = "persistent://public/default/t"


class BytesDecoding:
    """Gives payloads back as they are."""

    def decode_message(self, message: Message) -> bytes:
        return message.data()


BYTES = BytesDecoding()
SOURCE = EntrySource(TOPIC, BYTES)


def entry_bytes(entry: OutgoingEntry) -> bytes:
    """Return what a broker stores of an entry: checksum, metadata, payload."""
    head, payload = entry.send_frame(1)
    (size,) = struct.unpack_from(">I", head, 4)
    return head[8 + size :] + payload


def received(
    data: bytes, entry_id: int = 2, ack_set: Sequence[int] = (), source: EntrySource = SOURCE
) -> Entry:
    """Read an entry's bytes as they come in a MESSAGE command."""
    position = pb.MessageIdData(ledgerId=1, entryId=entry_id)
    command = pb.CommandMessage(consumer_id=1, message_id=position, ack_set=ack_set)
    whole = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=command).SerializeToString()
    body = struct.pack(">I", len(whole)) + whole + data
    return read_entry(command, Frame(len(body), (memoryview(body),)), source)
