"""Completion of acknowledged messages' futures with message ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.messages.message_id import MessageId
from proto.names import partition_index

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from client.producers.sending.chunking import Chunks
    from client.producers.sending.pending_entries import PendingEntry
    from client.producers.sending.pending_message import PendingMessage


class Answers:
    """A builder of a topic's message ids, completing the messages' futures.

    Args:
        topic: Full name; of a partition, with its suffix.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._partition = partition_index(topic)

    def answer(self, entry: PendingEntry, position: pb.MessageIdData) -> None:
        """Complete the messages of an acknowledged entry; chunked ones only at the last chunk."""
        ledger_id, entry_id = MessageId.from_proto(position).entry
        if entry.chunks is not None:
            self._answer_part(entry.messages[0], entry.chunks, ledger_id, entry_id)
            return
        partition, topic, count = self._partition, self._topic, len(entry.messages)
        if count == 1:
            result = entry.messages[0].result
            if not result.done():
                result.set_result(MessageId(partition, ledger_id, entry_id, topic_name=topic))
            return
        for index, message in enumerate(entry.messages):
            if not message.result.done():
                message.result.set_result(
                    MessageId(
                        partition,
                        ledger_id,
                        entry_id,
                        index,
                        batch_size=count,
                        topic_name=topic,
                    )
                )

    def _answer_part(
        self, message: PendingMessage, chunks: Chunks, ledger_id: int, entry_id: int
    ) -> None:
        """Keep the first chunk's id; the last chunk's id completes the message's id."""
        ids = (self._partition, ledger_id, entry_id)
        if chunks.first is None and chunks.message.chunk_count > 1:
            chunks.first = MessageId(*ids, topic_name=self._topic)
        if chunks.all_answered and not message.result.done():
            message.result.set_result(
                MessageId(*ids, topic_name=self._topic, first_chunk=chunks.first)
            )
