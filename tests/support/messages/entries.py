"""Entries as a broker sends them, made from this client's output."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

import proto.PulsarApi_pb2 as pb
from client.messages.batch import BatchBuilder
from client.messages.entry import Entry, EntrySource, read_entry
from client.messages.message import Message
from client.messages.outgoing import OutgoingEntry, OutgoingMessage, SendingProducer
from proto.frames import Frame

TOPIC = "persistent://public/default/t"
NOW = 1_700_000_000_000
PRODUCER = SendingProducer(1, "p")


class BytesDecoding:
    """Returns payloads unchanged."""

    def decode_message(self, message: Message) -> bytes:
        return message.data()


BYTES = BytesDecoding()
SOURCE = EntrySource(TOPIC, BYTES)


def batch_of(
    messages: Iterable[OutgoingMessage], producer: SendingProducer = PRODUCER
) -> OutgoingEntry:
    """Return the entry of a batch."""
    builder = BatchBuilder()
    for message in messages:
        builder.add(message)
    return builder.build(producer, NOW)


def plain(count: int) -> list[OutgoingMessage]:
    """Return messages with their numbers as payloads."""
    return [OutgoingMessage(b"%d" % number, number) for number in range(count)]


def encrypted(messages: int) -> OutgoingEntry:
    """Return a batch without available keys."""
    entry = batch_of(plain(messages))
    metadata = pb.MessageMetadata.FromString(entry.metadata)
    metadata.encryption_keys.add(key="k", value=b"v")
    return replace(entry, metadata=metadata.SerializeToString())


def compacted(messages: int, out: set[int]) -> OutgoingEntry:
    """Return a batch with the given indexes compacted away."""
    entry = batch_of(plain(messages))
    payload, at = b"", 0
    for index in range(messages):
        (size,) = struct.unpack_from(">I", entry.payload, at)
        start = at + 4 + size
        single = pb.SingleMessageMetadata.FromString(entry.payload[at + 4 : start])
        single.compacted_out = index in out
        head = single.SerializeToString()
        at = start + single.payload_size
        payload += struct.pack(">I", len(head)) + head + entry.payload[start:at]
    return replace(entry, payload=payload)


def entry_bytes(entry: OutgoingEntry) -> bytes:
    """Return the stored bytes of a sent entry."""
    head, payload = entry.send_frame(1)
    (size,) = struct.unpack_from(">I", head, 4)
    return head[8 + size :] + payload


def received(
    data: bytes | OutgoingEntry,
    entry_id: int = 2,
    ack_set: Sequence[int] = (),
    source: EntrySource = SOURCE,
) -> Entry:
    """Read an entry or its bytes as a MESSAGE command's."""
    if not isinstance(data, bytes):
        data = entry_bytes(data)
    position = pb.MessageIdData(ledgerId=1, entryId=entry_id)
    command = pb.CommandMessage(consumer_id=1, message_id=position, ack_set=ack_set)
    whole = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=command).SerializeToString()
    body = struct.pack(">I", len(whole)) + whole + data
    return read_entry(command, Frame(len(body), (memoryview(body),)), source)
