"""The producers of one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.access_modes import AccessModes
from broker.messages.errors import name_taken, producer_fenced, too_many_producers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.messages.producer import Producer, ProducerConnection


class Producers:
    """The producers of one topic, by name.

    Args:
        topic: Its full name.
        epoch: The topic epoch as it was kept; None before the first exclusive producer.
        epoch_changed: Keeps a new one.
    """

    def __init__(
        self, topic: str, epoch: int | None, epoch_changed: Callable[[int], object]
    ) -> None:
        self._topic = topic
        self._modes: AccessModes[Producer] = AccessModes(epoch)
        self._epoch_changed = epoch_changed
        self._open: dict[str, Producer] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Producer]:
        return iter(tuple(self._open.values()))

    @property
    def epoch(self) -> int | None:
        """Rises with each exclusive producer; None before the first."""
        return self._modes.epoch

    @property
    def waiting(self) -> int:
        """How many wait for exclusive access (waitingPublishers)."""
        return len(self._modes.waiting)

    def holder_of(self, name: str) -> ProducerConnection | None:
        """Return the connection of the producer with a name; None if it is free."""
        found = self._open.get(name)
        return None if found is None else found.cnx

    def add(self, producer: Producer, max_producers: int = 0) -> None:
        """Admit a producer and answer it, at once or when its turn has come.

        Args:
            producer: A new one.
            max_producers: Most at a time; 0 is no limit.

        Raises:
            RequestError: Another has its name, or what it needs to be alone.
        """
        if producer.access_mode == 0:
            self._check_room_for_a_sharer(producer, max_producers)
        admission = self._modes.ask(producer)
        for dropped in admission.dropped:
            del self._open[dropped.name]
            dropped.dropped()
        for waiting in admission.fenced_out:
            waiting.fail(producer_fenced("Fenced out"))
        if admission.ready:
            self._opened(producer)
        else:
            producer.waits()

    def _check_room_for_a_sharer(self, producer: Producer, max_producers: int) -> None:
        self._modes.check_sharing()
        if max_producers and len(self._open) >= max_producers:
            raise too_many_producers(self._topic)
        if producer.name in self._open:
            raise name_taken(producer.name, self._topic)

    def _opened(self, producer: Producer) -> None:
        self._open[producer.name] = producer
        if self._modes.holder is producer and self._modes.epoch is not None:
            self._epoch_changed(self._modes.epoch)
            producer.opened(self._modes.epoch)
        else:
            producer.opened(None)

    def left(self, producer: Producer) -> None:
        """Forget a producer; the one that waits for its place is told."""
        if self._open.get(producer.name) is producer:
            del self._open[producer.name]
        following = self._modes.leave(producer)
        if following is not None:
            self._opened(following)

    def disconnect(self) -> None:
        """Close all, those that wait first: nobody's turn has come."""
        for producer in (*tuple(self._modes.waiting), *self):
            producer.disconnect()
