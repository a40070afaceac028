"""Assembly of messages that are received in several chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.messages.entry import MAX_UNCOMPRESSED_BYTES, Entry
from client.messages.errors import BrokenEntryError, TooLargeEntryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.messages.message_id import MessageId
    from limiter.clock import Clock, TimerHandle

MOST_CHUNKS = 65_536
"""Maximum number of chunks of a message, each of which takes additional memory."""


@dataclass(slots=True, eq=False)
class _Incomplete:
    """A chunked message of which some chunks have not arrived yet."""

    expires_at: float
    total: tuple[int, int]
    parts: list[bytes] = field(default_factory=list)
    ids: list[MessageId] = field(default_factory=list)
    size_bytes: int = 0


class ChunkAssembly:
    """The chunked messages that a consumer has received only in part.

    The number of messages is bounded: beyond the limit, the oldest is evicted; incomplete messages
    also expire.

    Args:
        clock: The source of time.
        on_dropped: Function called with the ids of chunks that are given up, and whether to
            acknowledge them.
        most_messages: Maximum number of incomplete messages; 0 for no limit.
        acknowledges_oldest: Whether to acknowledge the chunks of a message that exceeds
            ``most_messages``.
        expiry_seconds: Seconds after which an incomplete message is given up; 0 for never.
        max_message_bytes: Maximum bytes of all chunks of a message.

    Attributes:
        pending_bytes: Bytes of the received chunks.
    """

    def __init__(
        self,
        clock: Clock,
        on_dropped: Callable[[Sequence[MessageId], bool], None],
        most_messages: int = 10,
        *,
        acknowledges_oldest: bool = False,
        expiry_seconds: float = 60.0,
        max_message_bytes: int = MAX_UNCOMPRESSED_BYTES,
    ) -> None:
        self._clock = clock
        self._on_dropped = on_dropped
        self._most_messages = most_messages
        self._acknowledges_oldest = acknowledges_oldest
        self._expiry_seconds = expiry_seconds
        self._max_message_bytes = max_message_bytes
        self._incomplete: dict[str, _Incomplete] = {}  # By uuid, oldest first.
        self._timer: TimerHandle | None = None
        self.pending_bytes = 0

    def __len__(self) -> int:
        return len(self._incomplete)

    def add(self, entry: Entry) -> Entry | None:
        """Add a received chunk; return the whole message after its last chunk, otherwise None.

        The returned payload joins all chunks, still compressed. If no message is returned, the
        chunk's permit is released.

        Raises:
            BrokenEntryError: The chunk does not fit the earlier chunks, now dropped.
            TooLargeEntryError: The whole message exceeds the limit.
        """
        metadata = entry.head.metadata
        if metadata.total_chunk_msg_size > self._max_message_bytes:
            raise TooLargeEntryError(metadata.total_chunk_msg_size, self._max_message_bytes)
        chunk_id, uuid = metadata.chunk_id, metadata.uuid
        message_id = entry.head.message_id()
        known = self._incomplete.get(uuid)
        if known is not None and 0 <= chunk_id < len(known.ids):
            if known.ids[chunk_id] == message_id:
                return None  # Repeated by the broker.
            if chunk_id > 0:
                self._on_dropped([message_id], True)  # Repeated by the producer.
                return None
        if chunk_id == 0:
            known = self._begin(uuid, entry)
        elif known is None or chunk_id != len(known.ids):
            self._lost_before(entry, message_id)
            return None
        return self._append(uuid, known, entry, message_id)

    def clear(self) -> None:
        """Forget all received chunks; the broker redelivers them."""
        self._incomplete.clear()
        self.pending_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, uuid: str, entry: Entry) -> _Incomplete:
        metadata = entry.head.metadata
        total = (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size)
        self._drop(uuid, acknowledge=True)  # If its producer restarted the message.
        if total[0] > MOST_CHUNKS or total[1] <= 0:
            raise BrokenEntryError(
                pb.CommandAck.UncompressedSizeCorruption,
                f"a message announces {total[1]} bytes in {total[0]} chunks: at most "
                f"{MOST_CHUNKS} chunks are taken",
            )
        if self._most_messages and len(self._incomplete) >= self._most_messages:
            self._drop(next(iter(self._incomplete)), acknowledge=self._acknowledges_oldest)
        known = _Incomplete(self._clock.now() + self._expiry_seconds, total)
        self._incomplete[uuid] = known
        self._arm()
        return known

    def _append(
        self, uuid: str, known: _Incomplete, entry: Entry, message_id: MessageId
    ) -> Entry | None:
        metadata = entry.head.metadata
        size = len(entry.payload)
        known.size_bytes += size
        self.pending_bytes += size
        known.parts.append(entry.payload)
        known.ids.append(message_id)
        is_whole = len(known.ids) == known.total[0]
        if (
            (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size) != known.total
            or known.size_bytes > known.total[1]
            or (is_whole and known.size_bytes != known.total[1])
        ):
            known.ids.pop()
            self._drop(uuid, acknowledge=True)
            raise BrokenEntryError(
                pb.CommandAck.UncompressedSizeCorruption,
                f"a chunk does not fit its message, which announced {known.total[1]} bytes in "
                f"{known.total[0]} chunks",
            )
        if not is_whole:
            return None
        self._remove(uuid)
        entry.payload = b"".join(known.parts)
        entry.head.chunk_ids = tuple(known.ids)
        return entry

    def _lost_before(self, entry: Entry, message_id: MessageId) -> None:
        """Give up a message of which an earlier chunk is missing, with all its received chunks."""
        metadata = entry.head.metadata
        known = self._remove(metadata.uuid)
        ids = known.ids if known is not None else []
        age_ms = self._clock.wall_ms() - metadata.publish_time
        is_old = 0 < self._expiry_seconds * 1_000 < age_ms
        self._on_dropped([*ids, message_id], is_old)

    def _remove(self, uuid: str) -> _Incomplete | None:
        if (known := self._incomplete.pop(uuid, None)) is not None:
            self.pending_bytes -= known.size_bytes
        return known

    def _drop(self, uuid: str, *, acknowledge: bool) -> None:
        known = self._remove(uuid)
        if known is not None and known.ids:
            self._on_dropped(known.ids, acknowledge)

    def _arm(self) -> None:
        if self._timer is None and self._expiry_seconds and self._incomplete:
            oldest = next(iter(self._incomplete.values()))
            self._timer = self._clock.call_at(oldest.expires_at, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.now()
        for uuid, known in list(self._incomplete.items()):
            if known.expires_at > now:
                break
            self._drop(uuid, acknowledge=True)
        self._arm()
