"""A submitted message without an answer."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from client.messages.outgoing import OutgoingMessage
from limiter.errors import raised_anew

if TYPE_CHECKING:
    import asyncio

    from client.messages.message_id import MessageId
    from client.producers.sending.chunking import Chunks
    from limiter.client_memory.reservation import Reservation


class PendingMessage(OutgoingMessage):
    """A message in flight.

    Args:
        payload: Payload bytes; None for a null value.
        sequence_id: Sequence id; -1 lets the producer count.
        result: Future of the message's id or error.
        waits: Whether to wait for a queue slot and memory, or fail.

    Attributes:
        result: As given.
        waits: As given.
        needs_bytes: Memory to reserve.
        partition: Index of the target partition.
        placed: Whether the message itself holds a queue slot, not yet its entry.
        reservation: Reserved memory, from admission to answer or failure.
        chunks: The message's chunks, once sending in chunks.
        serial: Order of submission to the producer.
        created_at: Time of submission.
    """

    __slots__ = (
        "chunks",
        "created_at",
        "needs_bytes",
        "partition",
        "placed",
        "reservation",
        "result",
        "serial",
        "waits",
    )

    def __init__(
        self,
        payload: bytes | None,
        sequence_id: int,
        result: asyncio.Future[MessageId],
        *,
        waits: bool,
    ) -> None:
        super().__init__(payload, sequence_id)
        self.result = result
        self.waits = waits
        self.needs_bytes = 0
        self.partition = 0
        self.placed = False
        self.reservation: Reservation | None = None
        self.chunks: Chunks | None = None
        self.serial = 0
        self.created_at = 0.0

    @property
    def is_admitted(self) -> bool:
        """True for an unsent message with a queue slot and memory."""
        return self.placed and self.reservation is not None

    @property
    def held_bytes(self) -> int:
        """Bytes to reserve: the payload, as upstream, with keys and properties."""
        size = self.size_bytes
        if self.properties:
            size += sum(map(_size, chain.from_iterable(self.properties.items())))
        if self.partition_key is not None:
            size += _size(self.partition_key)
        if self.ordering_key is not None:
            size += _size(self.ordering_key)
        return size

    def release(self) -> None:
        """Release the memory; idempotent."""
        if self.reservation is not None:
            self.reservation.release()

    def fail(self, error: Exception) -> None:
        """Set the error on the program's future, unless done."""
        if not self.result.done():
            self.result.set_exception(raised_anew(error))
            # Retrieved: the interpreter does not log an ignored error.
            self.result.exception()


def _size(text: str) -> int:
    """Return a text's bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
