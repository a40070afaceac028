"""Arrived messages are counted singly until taken or dropped."""

import proto.PulsarApi_pb2 as pb
from client.consumers.receiving.received import Received
from client.messages.entry import Entry
from client.messages.errors import BrokenEntryError
from client.messages.message import Message
from client.messages.message_id import Place
from tests.support.messages.entries import batch_of, plain, received


class Consumer:
    """Wants every message but some, and counts removed messages."""

    def __init__(self, unwanted: tuple[int, ...] = ()) -> None:
        self.unwanted = unwanted
        self.left = [0, 0]
        self.errors: list[int] = []
        self.received = Received(self)

    def read(self, entry: Entry) -> list[Message]:
        return [one for one in entry.take() if one.batch_index not in self.unwanted]

    def gone(self, messages: int, size_bytes: int) -> None:
        self.left[0] += messages
        self.left[1] += size_bytes

    def broken(self, _: Place, error: BrokenEntryError) -> None:
        self.errors.append(error.validation_error)

    def append(self, messages: int, entry_id: int = 0) -> None:
        self.received.append(received(batch_of(plain(messages)), entry_id), messages, 100)

    def taken(self) -> list[bytes]:
        payloads = []
        while (one := self.received.pop()) is not None:
            payloads.append(one.message.data())
            self.gone(one.messages, one.size_bytes)
        return payloads


def test_the_last_message_of_an_entry_accounts_for_its_remaining_bytes() -> None:
    consumer = Consumer()
    consumer.append(3)
    first = consumer.received.pop()
    assert first is not None
    assert (first.message.data(), first.messages, first.size_bytes) == (b"0", 1, 1)
    assert consumer.received.queued == 2
    assert consumer.taken() == [b"1", b"2"]
    assert (consumer.received.queued, consumer.received.queued_bytes) == (0, 0)
    assert consumer.left == [2, 99]


def test_skipped_messages_are_freed_with_their_entry() -> None:
    consumer = Consumer(unwanted=(0, 2))
    consumer.append(3)
    consumer.append(1)  # The whole entry is unwanted.
    assert consumer.taken() == [b"1"]
    assert consumer.left == [4, 200]
    assert consumer.received.queued == 0


def test_dropped_entries_are_freed_even_when_partly_taken() -> None:
    consumer = Consumer()
    for entry_id in range(3):
        consumer.append(2, entry_id)
    consumer.received.pop()
    consumer.received.drop({(1, 0), (1, 2)})
    assert consumer.left == [3, 199]
    assert (consumer.received.queued, consumer.received.queued_bytes) == (2, 100)
    assert consumer.taken() == [b"0", b"1"]


def test_a_batch_broken_in_the_middle_is_reported_and_freed() -> None:
    consumer = Consumer()
    entry = batch_of(plain(2))
    broken = type(entry)(entry.metadata, entry.payload[:-1], 0, 1, 2)
    consumer.received.append(received(broken), 2, 50)
    consumer.append(1, 3)
    assert consumer.taken() == [b"0"]
    assert consumer.errors == [pb.CommandAck.BatchDeSerializeError]
    assert consumer.left == [3, 150]


def test_clear_drops_and_frees_every_message() -> None:
    consumer = Consumer()
    consumer.append(3)
    consumer.received.pop()
    consumer.received.clear()
    assert consumer.left == [2, 99]
    assert consumer.received.pop() is None
