"""A two-pass search for the last message of each key of a topic.

The first pass determines the last message of each key; the second pass keeps these messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.messages.compaction.batches import (
    BatchMessage,
    UnreadableBatchError,
    is_readable_batch,
    messages_of,
    unpacked,
    with_some,
)
from broker.messages.entry import Entry
from broker.messages.metadata import MessageDigest, parse_metadata, payload_of
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    import proto.PulsarApi_pb2 as pb

MOST_KEY_BYTES = 256 * 1024 * 1024
"""The largest memory, in bytes, for the keys of one topic during a compaction."""
KEY_COST_BYTES = 150
"""The bytes of memory that a key takes in addition to its own bytes."""
MESSAGES_A_STEP = 200


class TooManyKeysError(Exception):
    """A topic whose keys need more memory than the limit; the error's text is one sentence."""


class _KeyedMessage(NamedTuple):
    """The properties of a message that decide whether compaction keeps it.

    Attributes:
        key: None for a message without a key.
        has_value: False for an empty message, which deletes the key.
        there: False if an earlier compaction has removed the message.
    """

    key: str | None
    has_value: bool
    there: bool = True


class _Opened(NamedTuple):
    """An entry whose metadata and messages are parsed.

    Attributes:
        metadata: The entry's metadata.
        messages: The messages of the batch, or the single message.
        batch: The messages of the batch with their bytes; None for a single message.
    """

    metadata: pb.MessageMetadata
    messages: list[_KeyedMessage]
    batch: list[BatchMessage] | None


class LatestKeys:
    """The last message of each key, as its number among all messages of the topic.

    Both passes process the same entries, in steps, so the numbers agree.

    Attributes:
        counted: Messages read so far in the current pass; the totals of both passes must agree.
        removed: Messages that the compaction does not keep.

    Source: upstream AbstractTwoPhaseCompactor.
    """

    def __init__(self, most_bytes: int = MOST_KEY_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._latest: dict[str, int] = {}
        self.counted = 0
        self.removed = 0

    def note(self, entries: Iterable[Entry]) -> Generator[None, None, None]:
        """Record the number of each key's last message in the given entries (the first pass).

        Raises:
            TooManyKeysError: The keys exceed the memory limit.
        """
        for entry in entries:
            opened = yield from _opened(entry, keep_bytes=False)
            if opened is None:
                self.counted += 1
                continue
            for number, message in enumerate(opened.messages, 1):
                self._note(message)
                if number % MESSAGES_A_STEP == 0:
                    yield

    def _note(self, message: _KeyedMessage) -> None:
        number, key = self.counted, message.key
        self.counted += 1
        if not message.there:
            return
        if key is None or not message.has_value:
            self.removed += 1
            if key is not None and self._latest.pop(key, None) is not None:
                self._bytes -= len(key) + KEY_COST_BYTES
        elif key in self._latest:
            self.removed += 1
            self._latest[key] = number
        else:
            self._latest[key] = number
            self._bytes += len(key) + KEY_COST_BYTES
            if self._bytes > self._most_bytes:
                raise TooManyKeysError(
                    f"its keys take more than {self._most_bytes} bytes of memory"
                )

    def second_pass(self) -> None:
        """Restart the numbering of messages at 0 for the second pass."""
        self.counted = 0

    def kept(self, entries: Iterable[Entry]) -> Generator[None, None, list[Entry]]:
        """Return those entries that hold the last message of a key (the second pass)."""
        left: list[Entry] = []
        for entry in entries:
            opened = yield from _opened(entry, keep_bytes=True)
            if opened is None:
                self.counted += 1
                left.append(entry)
                continue
            first = self.counted
            self.counted += len(opened.messages)
            stays = [
                index
                for index, message in enumerate(opened.messages)
                if message.key is not None and self._latest.get(message.key) == first + index
            ]
            if stays and opened.batch is None:
                left.append(entry)
            elif stays and opened.batch is not None:
                data = with_some(opened.metadata, opened.batch, stays)
                digest = MessageDigest(entry.message_count, entry.publish_time, entry.deliver_at)
                left.append(Entry(entry.ledger_id, entry.entry_id, data, digest))
            yield
        return left


def _opened(entry: Entry, *, keep_bytes: bool) -> Generator[None, None, _Opened | None]:
    """Parse the messages of an entry in steps; return None if it is unreadable.

    Compaction keeps unreadable entries.

    Args:
        entry: The entry.
        keep_bytes: Also return the bytes of a batch's messages.
    """
    try:
        metadata = parse_metadata(entry.data)
    except RemoteProtocolError:
        return None  # Profile pulsar stores unreadable messages.
    payload = payload_of(entry.data)
    if not is_readable_batch(metadata):
        size = metadata.uncompressed_size if metadata.compression else len(payload)
        key = metadata.partition_key if metadata.HasField("partition_key") else None
        yield
        return _Opened(metadata, [_KeyedMessage(key, size > 0)], None)
    if not metadata.IsInitialized():
        return None  # A part of the batch could not be written again.
    batch: list[BatchMessage] = []
    messages: list[_KeyedMessage] = []
    try:
        data = unpacked(metadata, payload)
        for message in messages_of(data, metadata.num_messages_in_batch):
            own = message.metadata
            if keep_bytes:
                batch.append(message)
            key = own.partition_key if own.HasField("partition_key") else None
            messages.append(_KeyedMessage(key, own.payload_size > 0, not own.compacted_out))
            if len(messages) % MESSAGES_A_STEP == 0:
                yield
    except UnreadableBatchError:
        return None
    return _Opened(metadata, messages, batch)
