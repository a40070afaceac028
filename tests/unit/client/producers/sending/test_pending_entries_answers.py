"""The ids returned to programs: of a single message, in a batch, and in chunks."""

from typing import cast

import proto.PulsarApi_pb2 as pb
from client.messages.chunked_message import ChunkedMessage, Chunks
from client.messages.message_id import MessageId
from client.producers.sending.pending_entries import Answers, PendingEntry
from client.producers.sending.pending_message import PendingMessage
from tests.unit.client.producers.sending.messages import pending

TOPIC = "persistent://public/default/t-partition-2"


def entry(*messages: PendingMessage, chunks: Chunks | None = None) -> PendingEntry:
    return PendingEntry(0, (b"", b""), messages, 0, chunks)


def at(entry_id: int) -> pb.MessageIdData:
    return pb.MessageIdData(ledgerId=7, entryId=entry_id)


async def test_the_id_of_a_single_message_names_its_entry() -> None:
    message = pending()
    Answers(TOPIC).answer(entry(message), at(3))
    assert message.result.result() == MessageId(2, 7, 3)
    assert message.result.result().topic_name == TOPIC


async def test_ids_of_a_batch_have_batch_indexes_and_a_cancelled_message_gets_none() -> None:
    messages = [pending() for _ in range(3)]
    messages[1].result.cancel()
    Answers(TOPIC).answer(entry(*messages), at(3))
    ids = [one.result.result() for one in messages if not one.result.cancelled()]
    assert [(one.batch_index(), one.batch_size) for one in ids] == [(0, 3), (2, 3)]


async def test_a_chunked_message_gets_its_id_after_the_last_receipt() -> None:
    class TwoParts:
        chunk_count = 2

    message, chunks = pending(), Chunks(cast("ChunkedMessage", TwoParts()), 2_000, sent=2)
    answers = Answers(TOPIC)
    for entry_id in (3, 4):
        assert not message.result.done()
        chunks.part_answered()
        answers.answer(entry(message, chunks=chunks), at(entry_id))
    found = message.result.result()
    assert (found.entry_id(), found.first_chunk) == (4, MessageId(2, 7, 3))
