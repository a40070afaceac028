"""A message that a program has given to a producer, and nobody has answered for yet."""

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
    """One message on its way.

    Args:
        payload: Its bytes; None for a null value.
        sequence_id: Its number; -1 lets the producer count.
        result: The program's: the message's id, or why there is none.
        waits: Whether it stands in line for its place and memory, or fails.

    Attributes:
        result: As given.
        waits: As given.
        needs_bytes: Memory that it is to reserve.
        partition: Where it was sent to, if the topic has several.
        placed: Whether it has a place in the queue that no entry of it has taken over.
        reservation: Its memory, from admission until the broker answered or it failed.
        chunks: Its parts, once it is being sent in several.
        serial: Its place among all that were given to this producer.
        created_at: When it was given.
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
        """True if it has its place and its memory, and was not sent yet."""
        return self.placed and self.reservation is not None

    @property
    def held_bytes(self) -> int:
        """Bytes that it reserves: its payload, as upstream, and its keys and properties."""
        size = self.size_bytes
        if self.properties:
            size += sum(map(_size, chain.from_iterable(self.properties.items())))
        if self.partition_key is not None:
            size += _size(self.partition_key)
        if self.ordering_key is not None:
            size += _size(self.ordering_key)
        return size

    def release(self) -> None:
        """Give its memory back; once more is harmless."""
        if self.reservation is not None:
            self.reservation.release()

    def fail(self, error: Exception) -> None:
        """Tell the program that it was not sent, if the program still wants to know."""
        if not self.result.done():
            self.result.set_exception(raised_anew(error))
            # Who does not look at it is not told by the interpreter.
            self.result.exception()


def _size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
