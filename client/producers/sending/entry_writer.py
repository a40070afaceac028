"""Encoding of messages as entries for a broker: a single message, a batch, or a chunk."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from client.exceptions import MessageTooBig
from client.messages.chunked_message import ChunkedMessage, Chunks
from client.messages.compression import compressing_takes_long
from client.messages.outgoing import message_entry
from client.producers.sending.pending_entries import PendingEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.messages.batch import BatchBuilder
    from client.messages.outgoing import OutgoingEntry, SendingProducer
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from client.producers.sending.send_line import SendLine
    from limiter.clock import Clock

Made: TypeAlias = "PendingEntry | Chunks"


class Compressing:
    """An encoder of unbatched messages, which compresses large ones in a thread.

    Meanwhile the message stays first in line, and the line is held. ``send_nowait`` compresses on
    the event loop: its message is sent immediately.

    Args:
        options: Producer options.
        line: The send line in which the message waits.
        go_on: Function called after each entry that a thread has encoded.
    """

    def __init__(
        self, options: ProducerOptions, line: SendLine, go_on: Callable[[], object]
    ) -> None:
        self._options = options
        self._line = line
        self._go_on = go_on
        self._made: tuple[PendingMessage, asyncio.Future[Made]] | None = None

    def has_made(self, message: PendingMessage) -> bool:
        """Return True if a thread has encoded this message and taken over its payload."""
        return self._made is not None and self._made[0] is message

    def made(self, message: PendingMessage, writer: EntryWriter) -> Made | None:
        """Return the entry or chunks of a message; None while a thread compresses it.

        Raises:
            Exception: The entry cannot be made.
        """
        if self._made is not None and self.has_made(message):
            return self._made[1].result()
        make = writer.chunks if self._options.chunking_enabled else writer.single
        compression = self._options.compression_type
        if not message.waits or not compressing_takes_long(compression, message.size_bytes):
            return make(message)
        self._line.is_held = message.placed = True
        making: asyncio.Future[Made] = asyncio.get_running_loop().run_in_executor(
            None, make, message
        )
        making.add_done_callback(lambda _: self._done(message, making))
        return None

    def _done(self, message: PendingMessage, making: asyncio.Future[Made]) -> None:
        self._line.is_held = False
        if making.cancelled():
            return  # The event loop is closing.
        making.exception()  # Mark the error as retrieved.
        self._made = (message, making)
        self._go_on()
        self._made = None


class EntryWriter:
    """An encoder of a producer's entries, which takes over the messages' payloads.

    Args:
        producer: The fields common to all entries.
        max_message_bytes: The broker's limit on an entry's metadata and payload, in bytes.
        clock: The source of publish times.
    """

    def __init__(self, producer: SendingProducer, max_message_bytes: int, clock: Clock) -> None:
        self.producer = producer
        self.max_message_bytes = max_message_bytes
        self._clock = clock

    def single(self, message: PendingMessage) -> PendingEntry:
        """Encode a message as an entry of its own.

        Raises:
            MessageTooBig: The entry exceeds the broker's limit.
        """
        entry = message_entry(message, self.producer, self._clock.wall_ms())
        return self._pending(entry, (message,), _let_go((message,)))

    def batch(
        self, batch: BatchBuilder, messages: Sequence[PendingMessage], *, beside_others: bool
    ) -> PendingEntry:
        """Encode messages as one entry; a single message is encoded without a batch.

        Args:
            batch: The batch holding the messages.
            messages: The same messages.
            beside_others: Whether sequence ids alternate with those of other batches. The entry
                then carries its last id, as the broker's deduplication might drop an entry with the
                first one.

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
        """Return the chunks of a message; a small message has a single chunk.

        Raises:
            MessageTooBig: The properties leave no space for payload.
        """
        now = self._clock.wall_ms()
        chunked = ChunkedMessage(message, self.producer, now, self.max_message_bytes)
        return Chunks(chunked, _let_go((message,)))

    def next_chunk(self, message: PendingMessage, chunks: Chunks) -> PendingEntry:
        """Encode the next chunk of a message as an entry."""
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
    """Clear the payload and properties of messages that an entry now contains.

    Return the payload bytes.
    """
    size_bytes = 0
    for message in messages:
        size_bytes += message.size_bytes
        message.payload = message.properties = None
    return size_bytes
