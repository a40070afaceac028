"""The messages of one topic that the program has, until it is done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from client.consumers.acknowledging.acknowledgements import Acknowledgements
    from client.consumers.acknowledging.due_times import Place
    from client.consumers.acknowledging.redelivery import Redelivery
    from client.messages.message import EntryHead
    from client.messages.message_id import MessageId

MOST_CHUNKED = 10_000
"""Chunked messages whose chunks are remembered; beyond, the oldest is forgotten, and of its chunks
only the last is acknowledged."""


class HandedOut:
    """Remembers of messages what their acknowledgement or redelivery needs.

    Args:
        acks: What is acknowledged and not sent.
        redelivery: What is to be sent again.
        freed: Told the bytes that the program is done with; None if they do not count.
    """

    def __init__(
        self,
        acks: Acknowledgements,
        redelivery: Redelivery,
        freed: Callable[[int], None] | None,
    ) -> None:
        self._acks = acks
        self._redelivery = redelivery
        self._freed = freed
        self._held: dict[Place, int] = {}
        self._chunks: dict[Place, tuple[MessageId, ...]] = {}
        self._simple = freed is None and not redelivery.watches

    def taken(self, head: EntryHead, size_bytes: int) -> None:
        """Remember a message that the program got, whose bytes count until it is done."""
        if self._simple and not head.chunk_ids:
            return
        place = head.ledger_id, head.entry_id
        if head.chunk_ids:
            if len(self._chunks) >= MOST_CHUNKED:
                del self._chunks[next(iter(self._chunks))]
            self._chunks[place] = head.chunk_ids
        if self._redelivery.watches:
            self._redelivery.taken(place)
        if self._freed is not None:
            self._held[place] = self._held.get(place, 0) + size_bytes

    def acknowledge(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge a message, with all of its chunks; see ``Acknowledgements.receipt``.

        Raises:
            InvalidMessage: See Acknowledgements.individual.
        """
        place = message_id.entry
        if (chunks := self._chunks.pop(place, None)) is not None:
            for chunk in chunks:
                self._acks.entry(chunk.entry)
        elif not self._acks.individual(message_id):
            return self._acks.receipt()
        self._redelivery.acknowledged(place)
        self._release((place,))
        return self._acks.receipt()

    def acknowledge_cumulative(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge everything up to a message, and it; see ``Acknowledgements.receipt``."""
        self._acks.cumulative(message_id)
        place, index = message_id.entry, message_id.batch_index()
        if 0 <= index < message_id.batch_size - 1:
            place = place[0], place[1] - 1
        self._redelivery.acknowledged_up_to(place)
        for one in [one for one in self._chunks if one <= place]:
            del self._chunks[one]
        self._release([one for one in self._held if one <= place])
        return self._acks.receipt()

    def returned(self, places: Iterable[Place]) -> list[Place]:
        """Forget entries that are sent again; return them with the chunks before them."""
        everything = list(places)
        self._release(everything)
        for place in tuple(everything):
            everything += [chunk.entry for chunk in self._chunks.pop(place, ())[:-1]]
        return everything

    def clear(self) -> None:
        """Forget everything: it comes again."""
        self._redelivery.clear()
        self._chunks.clear()
        self._release(tuple(self._held))

    def _release(self, places: Iterable[Place]) -> None:
        if self._freed is not None:
            for place in places:
                if size_bytes := self._held.pop(place, 0):
                    self._freed(size_bytes)
