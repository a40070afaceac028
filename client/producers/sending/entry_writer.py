"""Conversion of messages to a broker's entries: a single message, a batch, or a chunk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from client.exceptions import MessageTooBig
from client.messages.chunked_message import ChunkedMessage
from client.messages.outgoing import message_entry
from client.producers.sending.chunking import Chunks
from client.producers.sending.pending_entries import PendingEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.messages.batch import BatchBuilder
    from client.messages.outgoing import OutgoingEntry, SendingProducer
    from client.producers.sending.pending_message import PendingMessage
    from limiter.clock import Clock


class EntryWriter:
    """A writer of a producer's entries; contents move from the messages to the entries.

    Args:
        producer: The fields common to all entries.
        max_message_bytes: The broker's payload limit.
        clock: The source of publish times.
    """

    def __init__(self, producer: SendingProducer, max_message_bytes: int, clock: Clock) -> None:
        self.producer = producer
        self.max_message_bytes = max_message_bytes
        self._clock = clock

    def single(self, message: PendingMessage) -> PendingEntry:
        """Return a message as a separate entry.

        Raises:
            MessageTooBig: The entry exceeds the broker's limit.
        """
        entry = message_entry(message, self.producer, self._clock.wall_ms())
        return self._pending(entry, (message,), _let_go((message,)))

    def batch(
        self, batch: BatchBuilder, messages: Sequence[PendingMessage], *, beside_others: bool
    ) -> PendingEntry:
        """Return messages as one entry; a single message goes without a batch.

        Args:
            batch: The batch holding the messages.
            messages: The same messages.
            beside_others: Whether the numbers interleave with other batches. The entry then carries
                its last number: with the first, a deduplicating broker might drop the entry.

        Raises:
            MessageTooBig: The entry exceeds the broker's limit.
        """
        if len(messages) == 1:
            return self.single(messages[0])
        entry = batch.build(self.producer, self._clock.wall_ms())
        if beside_others:
            entry = replace(entry, sequence_id=entry.highest_sequence_id)
        return self._pending(entry, messages, _let_go(messages))

    def chunks(self, message: PendingMessage) -> Chunks:
        """Return a message's chunks; a small message has a single chunk.

        Raises:
            MessageTooBig: The properties leave no space for payload.
        """
        now = self._clock.wall_ms()
        chunked = ChunkedMessage(message, self.producer, now, self.max_message_bytes)
        return Chunks(chunked, _let_go((message,)))

    def next_chunk(self, message: PendingMessage, chunks: Chunks) -> PendingEntry:
        """Return the next chunk of a message."""
        entry = chunks.message.entry(chunks.sent)
        chunks.sent += 1
        return self._pending(entry, (message,), chunks.size_bytes, chunks)

    def _pending(
        self,
        entry: OutgoingEntry,
        messages: Sequence[PendingMessage],
        size_bytes: int,
        chunks: Chunks | None = None,
    ) -> PendingEntry:
        if len(entry.payload) > self.max_message_bytes:
            raise MessageTooBig(
                f"a payload of {len(entry.payload)} bytes is larger than the broker's limit of "
                f"{self.max_message_bytes}: send less, or allow chunks by chunking_enabled"
            )
        parts = entry.send_frame(self.producer.producer_id)
        return PendingEntry(entry.sequence_id, parts, messages, size_bytes, chunks)


def _let_go(messages: Sequence[PendingMessage]) -> int:
    """Clear the contents of messages, now held by entries; return the payload bytes."""
    size_bytes = 0
    for message in messages:
        size_bytes += message.size_bytes
        message.payload = message.properties = None
    return size_bytes
