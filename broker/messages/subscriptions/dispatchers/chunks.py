"""The consumers of chunked messages: all chunks of a message go to one consumer."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.messages.metadata import Chunk
    from broker.messages.subscriptions.consumer import Consumer

MOST_MESSAGES = 10_000
"""The largest number of chunked messages in delivery; of older ones the owner is forgotten."""


class ChunkOwner(NamedTuple):
    """The consumer of a chunked message's chunks.

    Attributes:
        consumer: The consumer that received the first chunk.
        number: The message's number, unique in the subscription.
    """

    consumer: Consumer
    number: int


class ChunkOwners:
    """The owners of the chunked messages in delivery, from the first chunk to the last.

    Source: upstream SharedConsumerAssignor.
    """

    def __init__(self) -> None:
        self._of: dict[bytes, ChunkOwner] = {}
        self._consumers: dict[int, Consumer] = {}
        self._numbers = count(1)

    def owns(self, chunk: Chunk) -> bool:
        """Return True if the message of a chunk has an owner."""
        return chunk.uuid in self._of

    def owner(self, chunk: Chunk, candidate: Consumer) -> ChunkOwner:
        """Return the owner of a chunk's message; without an owner, ``candidate`` becomes it."""
        owner = self._of.get(chunk.uuid)
        if owner is None:
            if len(self._of) >= MOST_MESSAGES:
                self._forget(next(iter(self._of)))
            owner = self._of[chunk.uuid] = ChunkOwner(candidate, next(self._numbers))
            self._consumers[owner.number] = candidate
        return owner

    def delivered(self, chunk: Chunk) -> None:
        """Forget the owner of a message whose last chunk was delivered."""
        if chunk.is_last:
            self._forget(chunk.uuid)

    def consumer(self, number: int) -> Consumer | None:
        """Return the consumer that owns a message by its number; None if it has no owner now."""
        return self._consumers.get(number)

    def left(self, consumer: Consumer) -> None:
        """Forget a removed consumer: its messages have no owner."""
        for uuid in [uuid for uuid, owner in self._of.items() if owner.consumer is consumer]:
            self._forget(uuid)

    def clear(self) -> None:
        """Forget all owners."""
        self._of.clear()
        self._consumers.clear()

    def _forget(self, uuid: bytes) -> None:
        owner = self._of.pop(uuid, None)
        if owner is not None:
            del self._consumers[owner.number]
