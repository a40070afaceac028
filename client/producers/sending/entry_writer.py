"""Turns messages into the entries that a broker stores: one message, a batch, or a part."""

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
    """Writes the entries of one producer; these hold the contents from then on, not the messages.

    Args:
        producer: What stands in each of them.
        max_message_bytes: Payloads above it the broker does not take.
        clock: Where the time of publishing comes from.
    """

    def __init__(self, producer: SendingProducer, max_message_bytes: int, clock: Clock) -> None:
        self.producer = producer
        self.max_message_bytes = max_message_bytes
        self._clock = clock

    def single(self, message: PendingMessage) -> PendingEntry:
        """Return a message as an entry of its own.

        Raises:
            MessageTooBig: The broker would not take it.
        """
        entry = message_entry(message, self.producer, self._clock.wall_ms())
        return self._pending(entry, (message,), _let_go((message,)))

    def batch(
        self, batch: BatchBuilder, messages: Sequence[PendingMessage], *, beside_others: bool
    ) -> PendingEntry:
        """Return several messages as one entry; a single one needs no batch around it.

        Args:
            batch: Has the messages in it.
            messages: The same.
            beside_others: Whether other batches have numbers between theirs. It goes by its last
                number then: by its first, a broker that removes duplicates might drop it.

        Raises:
            MessageTooBig: The broker would not take them.
        """
        if len(messages) == 1:
            return self.single(messages[0])
        entry = batch.build(self.producer, self._clock.wall_ms())
        if beside_others:
            entry = replace(entry, sequence_id=entry.highest_sequence_id)
        return self._pending(entry, messages, _let_go(messages))

    def chunks(self, message: PendingMessage) -> Chunks:
        """Return the parts of a message; one that fits has a single one.

        Raises:
            MessageTooBig: Its properties leave no room for a part.
        """
        now = self._clock.wall_ms()
        chunked = ChunkedMessage(message, self.producer, now, self.max_message_bytes)
        return Chunks(chunked, _let_go((message,)))

    def next_chunk(self, message: PendingMessage, chunks: Chunks) -> PendingEntry:
        """Return the next part of a message."""
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
    """Have messages hold no more what entries have; return how many bytes their payloads are."""
    size_bytes = 0
    for message in messages:
        size_bytes += message.size_bytes
        message.payload = message.properties = None
    return size_bytes
