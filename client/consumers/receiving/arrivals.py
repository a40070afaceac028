"""Decoding of one topic's entries before they are queued, and assembly of chunked messages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from client.messages.chunks import ChunkAssembly
from client.messages.compression import decompressing_takes_long
from client.messages.entry import Entry, EntrySource, read_entry
from client.messages.enums import ConsumerCryptoFailureAction
from client.messages.errors import BrokenEntryError
from client.messages.message import PlainBytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import proto.PulsarApi_pb2 as pb
    from client.consumers.options import ConsumerOptions
    from client.messages.message_id import MessageId, Place
    from client.pulsar_client import PulsarClient
    from proto.frames import Frame


class Arriving(Protocol):
    """Interface (typing Protocol) with the methods of a consumer that process received entries."""

    def entry_arrived(self, entry: Entry, messages: int, size_bytes: int) -> None:
        """Queue a decoded entry, whose permits and bytes are already counted."""

    def count_arrived(self, messages: int, size_bytes: int) -> None:
        """Subtract the permits that a received entry used, and start counting its bytes."""

    def count_freed(self, messages: int, size_bytes: int) -> None:
        """Stop counting the permits and bytes of messages that will not be queued."""

    def broken(self, place: Place, error: BrokenEntryError) -> None:
        """Skip an entry that cannot be decoded."""

    def chunks_dropped(self, ids: Sequence[MessageId], *, acknowledge: bool) -> None:
        """Acknowledge the chunks of an incomplete message, or have them redelivered."""


class Arrivals:
    """Received entries that are being decoded or decompressed before they are queued.

    Slow decompression runs in a thread, and an unknown schema version is requested; later entries
    wait meanwhile, to keep the order.

    Args:
        consumer: The consumer that the entries are for.
        cluster: Provides the clock, and fetches schema versions.
        topic: Full name of the topic.
        options: The schema, and the limits on chunks.
        most_bytes: Maximum size of a decompressed message in bytes.
    """

    def __init__(
        self,
        consumer: Arriving,
        cluster: PulsarClient,
        topic: str,
        options: ConsumerOptions,
        most_bytes: int,
    ) -> None:
        self._consumer = consumer
        schema = options.schema
        self._source = EntrySource(
            topic,
            schema or PlainBytes(),
            most_bytes,
            takes_encrypted=options.crypto_failure_action is ConsumerCryptoFailureAction.CONSUME,
        )
        self._versions = schema.writer_schemas(cluster, topic) if schema is not None else None
        self._assembly = ChunkAssembly(
            cluster.clock,
            self._chunks_dropped,
            options.max_pending_chunked_message,
            acknowledges_oldest=options.auto_ack_oldest_chunked_message_on_queue_full,
            expiry_seconds=options.expire_incomplete_chunks_seconds,
            max_message_bytes=most_bytes,
        )
        self._chunk_bytes = 0
        self._line: list[tuple[Entry, int, int]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of received messages that are not queued yet."""
        return sum(messages for _, messages, _ in self._line)

    @property
    def incomplete(self) -> int:
        """Number of chunked messages of which some chunks have not arrived yet."""
        return len(self._assembly)

    def read(self, message: pb.CommandMessage, frame: Frame, *, dropped: bool) -> None:
        """Decode an entry received from a connection.

        Args:
            message: The command.
            frame: The command's frame.
            dropped: Whether to count the entry without delivering it, because it is redelivered
                later or not wanted.
        """
        try:
            entry = read_entry(message, frame, self._source)
        except BrokenEntryError as error:
            # Receiver queues size the next grant by the arrived entries.
            self._consumer.count_arrived(error.messages, frame.total_size)
            self._consumer.broken(_place(message), error)
            self._consumer.count_freed(error.messages, frame.total_size)
            return
        messages = _messages(entry, message)
        if dropped:
            size_bytes = _held_bytes(entry)
            self._consumer.count_arrived(messages, size_bytes)
            self._consumer.count_freed(messages, size_bytes)
        elif entry.is_chunk:
            self._add_chunk(entry, message)
        else:
            size_bytes = _held_bytes(entry)
            self._consumer.count_arrived(messages, size_bytes)
            self._admit(entry, messages, size_bytes)

    def _add_chunk(self, entry: Entry, message: pb.CommandMessage) -> None:
        size_bytes = len(entry.payload)
        self._consumer.count_arrived(1, size_bytes)
        self._chunk_bytes += size_bytes
        try:
            whole = self._assembly.add(entry)
        except BrokenEntryError as error:
            self._consumer.broken(_place(message), error)
            whole = None
        if whole is None:
            self._consumer.count_freed(1, 0)
            self._free_chunks()
            return
        counted = self._chunk_bytes - self._assembly.pending_bytes
        self._chunk_bytes -= counted
        more = max(0, _held_bytes(whole) - counted)
        if more:
            self._consumer.count_arrived(0, more)
        self._admit(whole, 1, counted + more)

    def _chunks_dropped(self, ids: Sequence[MessageId], acknowledge: bool) -> None:
        self._free_chunks()
        self._consumer.chunks_dropped(ids, acknowledge=acknowledge)

    def _free_chunks(self) -> None:
        freed = self._chunk_bytes - self._assembly.pending_bytes
        self._chunk_bytes -= freed
        if freed:
            self._consumer.count_freed(0, freed)

    def _admit(self, entry: Entry, messages: int, size_bytes: int) -> None:
        if not self._line and not _takes_long(entry) and self._is_known(entry):
            self._consumer.entry_arrived(entry, messages, size_bytes)
            return
        self._line.append((entry, messages, size_bytes))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._make_ready())

    def _is_known(self, entry: Entry) -> bool:
        return self._versions is None or self._versions.known(entry.head)

    async def _make_ready(self) -> None:
        line = self._line
        try:
            while line:
                entry, messages, size_bytes = line[0]
                if _takes_long(entry):
                    await self._uncompress_in_thread(entry)
                if self._versions is not None:
                    await self._versions.learn(entry.head)
                del line[0]
                self._consumer.entry_arrived(entry, messages, size_bytes)
        finally:
            if self._line is line:
                self._task = None

    async def _uncompress_in_thread(self, entry: Entry) -> None:
        with suppress(BrokenEntryError):  # Taking the entry fails likewise, and counts the failure.
            await asyncio.get_running_loop().run_in_executor(None, entry.uncompress)

    def clear(self) -> None:
        """Discard the entries that are not queued yet; the broker redelivers them."""
        line, self._line = self._line, []
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for _, messages, size_bytes in line:
            self._consumer.count_freed(messages, size_bytes)
        self._assembly.clear()
        self._free_chunks()


def _place(message: pb.CommandMessage) -> Place:
    return message.message_id.ledgerId, message.message_id.entryId


def _messages(entry: Entry, message: pb.CommandMessage) -> int:
    """Return the number of permits that an entry uses: its number of unacknowledged messages."""
    size = entry.head.batch_size
    if not size or not message.ack_set:
        return max(1, size)
    bits = b"".join((word % 2**64).to_bytes(8, "little") for word in message.ack_set)
    return (int.from_bytes(bits, "little") & ((1 << size) - 1)).bit_count()


def _held_bytes(entry: Entry) -> int:
    return max(len(entry.payload), min(entry.uncompressed_bytes, entry.most_bytes))


def _takes_long(entry: Entry) -> bool:
    return decompressing_takes_long(entry.head.metadata.compression, entry.uncompressed_bytes)
