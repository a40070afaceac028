"""One topic's messages between handover to the program and acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.consumers.acknowledging.acknowledgements import Acknowledgements
from client.consumers.acknowledging.redelivery import Redelivery

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from client.consumers.acknowledging.redelivery import Redeliver
    from client.consumers.broker_link import BrokerLink
    from client.consumers.options import ConsumerOptions
    from client.messages.message import EntryHead
    from client.messages.message_id import MessageId, Place
    from limiter.clock import Clock

MOST_CHUNKED = 10_000
"""Maximum number of chunked messages with remembered chunks.

Beyond the limit the oldest is forgotten: only its last chunk gets acknowledged.
"""


class HandedOut:
    """The messages handed to the program, until acknowledgement or redelivery.

    Args:
        clock: The source of time.
        options: Acknowledgement and redelivery options.
        link: Commands to the broker.
        redeliver: Called with the entries due for redelivery.
        freed: Called with the released bytes; None if bytes are not counted until acknowledgement.

    Attributes:
        acks: Unsent acknowledgements.
        redelivery: Entries pending redelivery.
    """

    def __init__(
        self,
        clock: Clock,
        options: ConsumerOptions,
        link: BrokerLink,
        redeliver: Redeliver,
        freed: Callable[[int], None] | None,
    ) -> None:
        self._link = link
        self.acks = Acknowledgements(clock, options, link)
        self.redelivery = Redelivery(clock, options, redeliver)
        self._freed = freed
        self._held: dict[Place, int] = {}
        self._chunks: dict[Place, tuple[MessageId, ...]] = {}
        self._simple = freed is None and not self.redelivery.watches

    def taken(self, head: EntryHead, size_bytes: int) -> None:
        """Track a message handed to the program; its bytes count until released."""
        if self._simple and not head.chunk_ids:
            return
        place = head.ledger_id, head.entry_id
        if head.chunk_ids:
            if len(self._chunks) >= MOST_CHUNKED:
                del self._chunks[next(iter(self._chunks))]
            self._chunks[place] = head.chunk_ids
        if self.redelivery.watches:
            self.redelivery.taken(place)
        if self._freed is not None:
            self._held[place] = self._held.get(place, 0) + size_bytes

    def acknowledge(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge a message with all of its chunks; see ``Acknowledgements.receipt``.

        Raises:
            InvalidMessage: See Acknowledgements.individual.
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        place = message_id.entry
        if (chunks := self._chunks.pop(place, None)) is not None:
            for chunk in chunks:
                self.acks.entry(chunk.entry)
        elif not self.acks.individual(message_id):
            return self.acks.receipt()
        self.redelivery.forget(place)
        self._release((place,))
        return self.acks.receipt()

    def acknowledge_cumulative(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge all messages up to and including a message; see ``Acknowledgements.receipt``.

        Raises:
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        place = self.acks.cumulative(message_id)
        self.redelivery.forget_up_to(place)
        for one in [one for one in self._chunks if one <= place]:
            del self._chunks[one]
        self._release([one for one in self._held if one <= place])
        return self.acks.receipt()

    def refuse(self, message_id: MessageId, redelivery_count: int) -> None:
        """Schedule the redelivery of a message, and so of its whole entry.

        Raises:
            PulsarException: The consumer is closed, or failed.
        """
        self._link.check_open()
        if self._link.persistent:
            self.redelivery.refuse(message_id.entry, redelivery_count)
        else:  # Never redelivered: release the counted bytes now.
            self.returned((message_id.entry,))

    def returned(self, places: Iterable[Place]) -> list[Place]:
        """Forget redelivered entries; return the entries with their preceding chunks."""
        everything = list(places)
        self._release(everything)
        for place in tuple(everything):
            self.redelivery.forget(place)
            everything += [chunk.entry for chunk in self._chunks.get(place, ())[:-1]]
        return everything

    def clear(self) -> None:
        """Forget all entries, about to be redelivered; keep the chunk ids of messages."""
        self.redelivery.clear()
        self._release(tuple(self._held))

    def _release(self, places: Iterable[Place]) -> None:
        if self._freed is not None:
            for place in places:
                if size_bytes := self._held.pop(place, 0):
                    self._freed(size_bytes)
