"""A producer's batches that still accept messages."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from client.messages.batch import BatchBuilder
from client.messages.enums import BatchingType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from limiter.clock import Clock, TimerHandle

MOST_IN_A_BATCH = 8_192
"""Maximum number of messages in a batch: a receipt answers them all in one event-loop iteration."""

HEAD_BYTES = 64
"""Maximum number of bytes that a batched message takes besides payload, keys and properties."""
WRITTEN_FOR_HELD = 7
"""Maximum number of bytes written for each byte of keys and properties, as these may be short."""


class OpenBatch(NamedTuple):
    """A batch that still accepts messages, with the messages in it."""

    builder: BatchBuilder
    messages: list[PendingMessage]


class OpenBatches:
    """The batches that still accept messages: a single one, or one for each key.

    Their number is bounded, because every message holds a queue slot and memory.

    Args:
        options: Producer options.
        clock: The source of time.
        due: Function called when the first message has waited for the longest delay.

    Attributes:
        sent_sequence_id: The highest sequence id that was sent, or that the broker has stored
            before.

    Source: upstream BatchMessageContainerImpl and BatchMessageKeyBasedContainer.
    """

    def __init__(self, options: ProducerOptions, clock: Clock, due: Callable[[], object]) -> None:
        self._by_key = options.batching_type is BatchingType.KeyBased
        self._most_messages = min(options.batching_max_messages, MOST_IN_A_BATCH)
        self._most_bytes = options.batching_max_allowed_size_in_bytes
        self._delay_seconds = options.batching_max_publish_delay_ms / 1000
        self._clock, self._due = clock, due
        self._timer: TimerHandle | None = None
        self._batches: dict[str, OpenBatch] = {}
        self._count = self._bytes = self._written_bytes = 0
        self._has_texts = False
        self._lowest_sequence_id = self._highest_sequence_id = -1
        self.sent_sequence_id = -1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PendingMessage]:
        return chain.from_iterable(batch.messages for batch in self._batches.values())

    @property
    def full(self) -> bool:
        """True if the batches are full and should be sent now."""
        return self._count >= self._most_messages or self._bytes >= self._most_bytes

    def takes(self, size_bytes: int) -> bool:
        """Return False for a message as large as a whole batch, which is better sent alone."""
        return size_bytes < self._most_bytes

    def has_room(self, message: PendingMessage, most_written_bytes: int) -> bool:
        """Return False if a message does not fit into the open batches and needs a new one.

        A deduplicating broker judges a batch as a whole: its numbers must rise, and be either all
        repeated or all new (apache/pulsar 6326).

        Args:
            message: The message to add.
            most_written_bytes: The broker's limit in bytes for a batch with all keys and
                properties.
        """
        if not self._count:
            return True
        if message.sequence_id <= self._highest_sequence_id:
            return False
        if self._lowest_sequence_id <= self.sent_sequence_id < message.sequence_id:
            return False
        size = message.size_bytes
        texts = message.needs_bytes - size
        # The batch limit counts only payloads.
        if texts or self._has_texts:
            written = self._written_bytes + HEAD_BYTES + WRITTEN_FOR_HELD * texts + size
            if written > most_written_bytes:
                return False
        return self._bytes + size <= self._most_bytes

    def add(self, message: PendingMessage) -> None:
        """Add a message to the batch of its key."""
        key = self._key(message)
        batch = self._batches.get(key) or OpenBatch(BatchBuilder(), [])
        before = batch.builder.size_bytes
        batch.builder.add(message)
        self._written_bytes += batch.builder.size_bytes - before
        batch.messages.append(message)
        self._batches[key] = batch  # Last: a failed add leaves no batch.
        if not self._count:
            self._lowest_sequence_id = message.sequence_id
        if self._timer is None:
            due_at = self._clock.now() + self._delay_seconds
            self._timer = self._clock.call_at(due_at, self._due)
        self._bytes += message.size_bytes
        self._count += 1
        self._has_texts |= message.needs_bytes > message.size_bytes
        self._highest_sequence_id = message.sequence_id

    def _key(self, message: PendingMessage) -> str:
        """Return the key of the batch that a message belongs to.

        As upstream, the ordering key takes precedence over the partition key.
        """
        if not self._by_key:
            return ""
        return message.ordering_key or message.partition_key or ""

    def take(self) -> list[OpenBatch]:
        """Remove and return the batches, sorted by their last messages' sequence ids.

        A deduplicating broker would drop a batch as a repetition after one with a later sequence
        id.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batches, self._batches = list(self._batches.values()), {}
        self.sent_sequence_id = max(self.sent_sequence_id, self._highest_sequence_id)
        self._count = self._bytes = self._written_bytes = 0
        self._has_texts = False
        if len(batches) > 1:
            batches.sort(key=lambda batch: batch.messages[-1].sequence_id)
        return batches
